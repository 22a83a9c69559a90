"""From a coordinate kernel and one schedule to a CUDA kernel: `arguments` are its integers, `lanes` computes values,
`flat` and `row` are its loops."""
