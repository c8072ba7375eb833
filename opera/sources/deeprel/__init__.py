"""DeepREL as a migration source: related operators exchange their invocations.

After "Fuzzing deep-learning libraries via automated relational API inference" (ESEC/FSE 2022); docs/deeprel.md says where
opera differs.
"""
