"""What all compilers that PyTorch itself holds have in common."""


def call(model, args, to_numpy):
    result = model(*args)
    return [to_numpy(x) for x in (result if isinstance(result, tuple) else (result,))]
