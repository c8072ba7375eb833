"""TensorRT: one module a route, and what they share."""
