"""What a learner records: contracts passed, predictions, answers; beside the notebook."""
