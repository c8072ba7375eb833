"""What a workspace holds as tables: pandas DataFrames for Python (`opera.open`), CSV and Parquet files (docs/data.md)."""
