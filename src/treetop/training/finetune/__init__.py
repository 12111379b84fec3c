"""Fine-tuning of the encoder, level by level (torch)."""
