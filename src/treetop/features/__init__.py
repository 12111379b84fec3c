"""Features of documents: TF-IDF, encoders, and both side by side."""
