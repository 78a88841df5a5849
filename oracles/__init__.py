"""What tests and developers' runs share: judges that share no code with the engine, generators of cases, laws
as checks, models that are tables, and the data directory. Nothing here imports a test or a run.
"""
