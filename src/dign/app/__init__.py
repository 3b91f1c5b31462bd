"""The playground: a page to corrupt images on and watch the models."""
