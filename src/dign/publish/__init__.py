"""A trained model for others: hub folder, model card, export."""
