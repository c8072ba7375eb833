"""What users of the compilers write: the steps that frontends call, and that reproducers print as they stand.

A module here imports a compiler, numpy, the standard library and other recipes, and nothing else of opera; it is imported
in a prepared worker alone. Its functions have no types and few words, for their readers are a compiler's developers. What
a script needs of a module is the functions that it names and all that these use; statements that define no name are
always with them. See opera.compilers.Recipe.
"""
