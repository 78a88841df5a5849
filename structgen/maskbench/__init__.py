"""`structgen bench`: engines side by side on many schemas, and the page that shows it.

    corpus    schemas and labelled instances: a folder, a checkout, the hub, cases made here
    tokens    one vocabulary for all engines
    engines   one adapter a file, imported when it is named
    masks     one schema, one engine: time to first mask, time between masks, verdicts
    endtoend  one schema, one engine, a model: coverage, compliance, time per token
    workers   a child process per engine under limits of time and memory
    runs      a folder of rows that a run fills, resumes and reads back
    scale     the same work on Ray
    figures   percentiles, ratios and their intervals
    report    what there is to tell;  page (with charts) and markdown write it
    comparison  one run against another, with intervals
    drive     cases through the engines of a lane

Nothing outside `structgen.cli` imports this, and nothing here is needed to use the library.
"""
