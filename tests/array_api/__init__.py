"""The array API: our own tests of `xtensor.array_api`, other libraries on our tensors, and the standard's conformance suite."""
