"""What the pipeline costs and gains: each module prints a table and then one JSON object per figure."""
