"""The studies behind the chapters: what is compared, fixed before it is run, and what came out."""
