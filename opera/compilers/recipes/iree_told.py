"""IREE's compiler tells by diagnostics why it fails, and returns False: the errors among them become what is raised."""


def diagnosed(context):
    """Return the list that messages of errors are appended to, each once."""
    said = []

    def told(diagnostic):
        if diagnostic.severity.name == "ERROR" and diagnostic.message not in said:
            said.append(diagnostic.message)
        return True

    context.attach_diagnostic_handler(told)
    return said


def fail(said):
    raise RuntimeError("\n".join(said) or "IREE failed without a word")
