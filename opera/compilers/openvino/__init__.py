"""OpenVINO: one module a route."""
