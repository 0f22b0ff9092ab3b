"""What executed notebooks hold: outputs, figures, views."""
