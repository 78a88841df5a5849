"""`structgen serve`: OpenAI's interface over a model of this package. The application is `app.create_app`."""
