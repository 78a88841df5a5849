"""Front ends turn the texts and values of users into grammars for the core. Each file reads one dialect."""
