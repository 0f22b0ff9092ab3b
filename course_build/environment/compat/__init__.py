"""The course with the oldest and the newest packages that its declared ranges allow."""
