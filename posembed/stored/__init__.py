"""The results that chapters show: runs, trained tables, studies of published tables, and a few trained models."""
