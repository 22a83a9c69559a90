"""Models, the error measure, and measurements: what tests, the demo and the benchmark scripts share."""
