"""What only studies train and measure: their settings, tasks, objectives, models and inspections."""
