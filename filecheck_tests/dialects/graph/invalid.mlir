// RUN: dlcb-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: add: ?: sizes that do not broadcast: 3 and 4
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[2, 4], f32> input "y") {
  %r = dlcb.graph.add %x, %y : (tensor<[2, 3], f32>, tensor<[2, 4], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: where: ?: sizes that do not broadcast: 5 and 6
dlcb.graph.func @main(%x: tensor<[5], i1> input "x", %y: tensor<[5], f32> input "y", %w: tensor<[6], f32> input "w") {
  %r = dlcb.graph.where %x, %y, %w : (tensor<[5], i1>, tensor<[5], f32>, tensor<[6], f32>) -> tensor<[5], f32>
  dlcb.graph.return
}

// -----

// CHECK: reshape: ?: number of elements differs: 6 and 8
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.reshape %x {shape = [2, 4]} : (tensor<[2, 3], f32>) -> tensor<[2, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: expand: ?: size that cannot be expanded: 3 and 4
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.expand %x {shape = [2, 4]} : (tensor<[2, 3], f32>) -> tensor<[2, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: slice: ?: slice out of range: 8 and 7
dlcb.graph.func @main(%x: tensor<[7], f32> input "x") {
  %r = dlcb.graph.slice %x {starts = [2], shape = [6], steps = [1]} : (tensor<[7], f32>) -> tensor<[6], f32>
  dlcb.graph.return
}

// -----

// CHECK: concat: ?: sizes of dim 1 differ: 3 and 4
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[2, 4], f32> input "y") {
  %r = dlcb.graph.concat %x, %y {axis = 0} : (tensor<[2, 3], f32>, tensor<[2, 4], f32>) -> tensor<[4, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: insert: ?: slice out of range: 8 and 7
dlcb.graph.func @main(%x: tensor<[7], f32> input "x", %y: tensor<[6], f32> input "y") {
  %r = dlcb.graph.insert %x, %y {starts = [2], steps = [1]} : (tensor<[7], f32>, tensor<[6], f32>) -> tensor<[7], f32>
  dlcb.graph.return
}

// -----

// CHECK: amax: ?: nothing to reduce: 0 and 0
dlcb.graph.func @main(%x: tensor<[3, 0], f32> input "x") {
  %r = dlcb.graph.amax %x {axes = [1]} : (tensor<[3, 0], f32>) -> tensor<[3], f32>
  dlcb.graph.return
}

// -----

// CHECK: amin: ?: nothing to reduce: 0 and 0
dlcb.graph.func @main(%x: tensor<[0, 3], f32> input "x") {
  %r = dlcb.graph.amin %x {axes = [0]} : (tensor<[0, 3], f32>) -> tensor<[3], f32>
  dlcb.graph.return
}

// -----

// CHECK: position: ?: nothing to reduce: 0 and 0
dlcb.graph.func @main(%x: tensor<[3, 0], f32> input "x", %w: tensor<[3, 1], f32> input "w") {
  %r = dlcb.graph.position %x, %w {axes = [1]} : (tensor<[3, 0], f32>, tensor<[3, 1], f32>) -> tensor<[3], i64>
  dlcb.graph.return
}

// -----

// CHECK: position: ?: sizes of what is looked for: [4, 1] and [3, 1]
dlcb.graph.func @main(%x: tensor<[3, 2], f32> input "x", %w: tensor<[4, 1], f32> input "w") {
  %r = dlcb.graph.position %x, %w {axes = [1]} : (tensor<[3, 2], f32>, tensor<[4, 1], f32>) -> tensor<[3], i64>
  dlcb.graph.return
}

// -----

// CHECK: last_position: ?: sizes of x and of the running value: [2] and [3]
dlcb.graph.func @main(%x: tensor<[3], f32> input "x", %y: tensor<[2], f32> input "y") {
  %r = dlcb.graph.last_position %x, %y {axis = 0} : (tensor<[3], f32>, tensor<[2], f32>) -> tensor<[3], i64>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.cumsum: axis 2 of a tensor of 2 dims
dlcb.graph.func @main(%x: tensor<[3, 2], f32> input "x") {
  %r = dlcb.graph.cumsum %x {axis = 2} : (tensor<[3, 2], f32>) -> tensor<[3, 2], f32>
  dlcb.graph.return
}

// -----

// CHECK: max_pool: ?: the window is larger than the input: 5 and 3
dlcb.graph.func @main(%x: tensor<[1, 2, 3], f32> input "x") {
  %r = dlcb.graph.max_pool %x {kernel = [5], stride = [1], padding = [0], dilation = [1]} : (tensor<[1, 2, 3], f32>) -> tensor<[1, 2, 0], f32>
  dlcb.graph.return
}

// -----

// CHECK: avg_pool: ?: the window is larger than the input: 5 and 3
dlcb.graph.func @main(%x: tensor<[1, 2, 3], f32> input "x") {
  %r = dlcb.graph.avg_pool %x {kernel = [5], stride = [1], padding = [0], dilation = [1]} : (tensor<[1, 2, 3], f32>) -> tensor<[1, 2, 0], f32>
  dlcb.graph.return
}

// -----

// CHECK: gather: ?: indices reach beyond dim 1 of the data: 4 and 3
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[2, 4], i64> input "y") {
  %r = dlcb.graph.gather %x, %y {axis = 0} : (tensor<[2, 3], f32>, tensor<[2, 4], i64>) -> tensor<[2, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: put: ?: size of dim 1 of the source: 5 and 3
dlcb.graph.func @main(%x: tensor<[4, 3], f32> input "x", %y: tensor<[2], i64> input "y", %w: tensor<[2, 5], f32> input "w") {
  %r = dlcb.graph.put %x, %y, %w {axis = 0} : (tensor<[4, 3], f32>, tensor<[2], i64>, tensor<[2, 5], f32>) -> tensor<[4, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: matmul: ?: inner sizes differ: 3 and 4
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[4, 5], f32> input "y") {
  %r = dlcb.graph.matmul %x, %y : (tensor<[2, 3], f32>, tensor<[4, 5], f32>) -> tensor<[2, 5], f32>
  dlcb.graph.return
}

// -----

// CHECK: matmul: ?: sizes of dim 0 differ: 2 and 3
dlcb.graph.func @main(%x: tensor<[2, 4, 3], f32> input "x", %y: tensor<[3, 3, 5], f32> input "y") {
  %r = dlcb.graph.matmul %x, %y : (tensor<[2, 4, 3], f32>, tensor<[3, 3, 5], f32>) -> tensor<[3, 4, 5], f32>
  dlcb.graph.return
}

// -----

// CHECK: matmul: ?: size of the bias: 6 and 5
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[3, 5], f32> input "y", %w: tensor<[6], f32> input "w") {
  %r = dlcb.graph.matmul %x, %y, %w : (tensor<[2, 3], f32>, tensor<[3, 5], f32>, tensor<[6], f32>) -> tensor<[2, 5], f32>
  dlcb.graph.return
}

// -----

// CHECK: convolution: ?: input channels differ: 3 and 2
dlcb.graph.func @main(%x: tensor<[1, 3, 5, 5], f32> input "x", %y: tensor<[4, 2, 3, 3], f32> input "y") {
  %r = dlcb.graph.convolution %x, %y {stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1} : (tensor<[1, 3, 5, 5], f32>, tensor<[4, 2, 3, 3], f32>) -> tensor<[1, 4, 3, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: convolution: ?: size of the bias: 5 and 4
dlcb.graph.func @main(%x: tensor<[1, 3, 5, 5], f32> input "x", %y: tensor<[4, 3, 3, 3], f32> input "y", %w: tensor<[5], f32> input "w") {
  %r = dlcb.graph.convolution %x, %y, %w {stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1} : (tensor<[1, 3, 5, 5], f32>, tensor<[4, 3, 3, 3], f32>, tensor<[5], f32>) -> tensor<[1, 4, 3, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: convolution: ?: the kernel is larger than the input: 3 and 2
dlcb.graph.func @main(%x: tensor<[1, 3, 2, 5], f32> input "x", %y: tensor<[4, 3, 3, 3], f32> input "y") {
  %r = dlcb.graph.convolution %x, %y {stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1} : (tensor<[1, 3, 2, 5], f32>, tensor<[4, 3, 3, 3], f32>) -> tensor<[1, 4, 0, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: attention: ?: width of queries and keys differ: 4 and 3
dlcb.graph.func @main(%x: tensor<[1, 2, 5, 4], f32> input "x", %y: tensor<[1, 2, 7, 3], f32> input "y", %w: tensor<[1, 2, 7, 4], f32> input "w") {
  %r = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64} : (tensor<[1, 2, 5, 4], f32>, tensor<[1, 2, 7, 3], f32>, tensor<[1, 2, 7, 4], f32>) -> tensor<[1, 2, 5, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: attention: ?: length of keys and values differ: 7 and 6
dlcb.graph.func @main(%x: tensor<[1, 2, 5, 4], f32> input "x", %y: tensor<[1, 2, 7, 4], f32> input "y", %w: tensor<[1, 2, 6, 4], f32> input "w") {
  %r = dlcb.graph.attention %x, %y, %w {scale = 5.000000e-01 : f64} : (tensor<[1, 2, 5, 4], f32>, tensor<[1, 2, 7, 4], f32>, tensor<[1, 2, 6, 4], f32>) -> tensor<[1, 2, 5, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: attention: ?: heads of keys do not divide heads of queries: 2 and 3
dlcb.graph.func @main(%x: tensor<[1, 3, 5, 4], f32> input "x", %y: tensor<[1, 2, 5, 4], f32> input "y", %w: tensor<[1, 2, 5, 4], f32> input "w") {
  %r = dlcb.graph.attention %x, %y, %w {grouped, scale = 5.000000e-01 : f64} : (tensor<[1, 3, 5, 4], f32>, tensor<[1, 2, 5, 4], f32>, tensor<[1, 2, 5, 4], f32>) -> tensor<[1, 3, 5, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: layer_norm: ?: normalized size: 4 and 3
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[4], f32> input "y") {
  %r = dlcb.graph.layer_norm %x, %y {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[2, 3], f32>, tensor<[4], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: rms_norm: ?: normalized size: 4 and 3
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[4], f32> input "y") {
  %r = dlcb.graph.rms_norm %x, %y {axes = 1, eps = 1.000000e-05 : f64} : (tensor<[2, 3], f32>, tensor<[4], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: batch_norm: ?: channels differ: 3 and 4
dlcb.graph.func @main(%x: tensor<[2, 3, 5], f32> input "x", %y: tensor<[4], f32> input "y", %w: tensor<[4], f32> input "w") {
  %r = dlcb.graph.batch_norm %x, %y, %w {eps = 1.000000e-05 : f64} : (tensor<[2, 3, 5], f32>, tensor<[4], f32>, tensor<[4], f32>) -> tensor<[2, 3, 5], f32>
  dlcb.graph.return
}

// -----

// CHECK: tensor: negative size in [2, -1]
dlcb.graph.func @main(%x: tensor<[2, -1], f32> input "x") {
  dlcb.graph.return
}

// -----

// CHECK: tensor: element type i4 is none of f16, bf16, f32, f64, i1, ui8, i8, i16, i32, i64
dlcb.graph.func @main(%x: tensor<[2], i4> input "x") {
  dlcb.graph.return
}

// -----

// CHECK: tensor: the layout has 1 dims, the shape 2
dlcb.graph.func @main(%x: tensor<[2, 3], f32, dense<[0]>> input "x") {
  dlcb.graph.return
}

// -----

// CHECK: dense layout: [0, 2] is no order of the dims
dlcb.graph.func @main(%x: tensor<[2, 3], f32, dense<[0, 2]>> input "x") {
  dlcb.graph.return
}

// -----

// CHECK: expected a layout: dense<[...]> or strided<[...], offset>
dlcb.graph.func @main(%x: tensor<[2, 3], f32, tiled> input "x") {
  dlcb.graph.return
}

// -----

// CHECK: expected a dim: an integer or the name of a symbol
dlcb.graph.func @main(%x: tensor<["n", 3], f32> input "x") {
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.func: argument kind 'output' is none of input, weight, int
dlcb.graph.func @main(%x: tensor<[2], f32> output "x") {
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.func: the body does not end with dlcb.graph.return
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  dlcb.graph.yield %x : !dlcb.graph.tensor<[2, 3], f32>
}

// -----

// CHECK: dlcb.graph.neg: dim 1 of the result is 4, the operands give 3
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.neg %x : (tensor<[2, 3], f32>) -> tensor<[2, 4], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.neg: the result has rank 1, the operands give 2
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.neg %x : (tensor<[2, 3], f32>) -> tensor<[2], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.permute: order [1, 1] is no permutation of 2 dims
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.permute %x {order = [1, 1]} : (tensor<[2, 3], f32>) -> tensor<[3, 2], f32>
  dlcb.graph.return
}

// -----

// CHECK: 'axis' is given twice
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.softmax %x {axis = 1, axis = 0} : (tensor<[2, 3], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: property 'axis' expected
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.softmax %x : (tensor<[2, 3], f32>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: slice: ?: slice starts before 0: 0 and -1
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.slice %x {starts = [-1, 0], shape = [1, 3], steps = [1, 1]} : (tensor<[2, 3], f32>) -> tensor<[1, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.matmul: 1 operands, expected 2 or one more
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  %r = dlcb.graph.matmul %x : (tensor<[2, 3], f32>) -> tensor<[2, 2], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.matmul: operands of rank 2 and 1, expected at least 2
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[3], f32> input "y") {
  %r = dlcb.graph.matmul %x, %y : (tensor<[2, 3], f32>, tensor<[3], f32>) -> tensor<[2], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.matmul: operands of rank 4 and 3
dlcb.graph.func @main(%x: tensor<[2, 2, 2, 3], f32> input "x", %y: tensor<[2, 3, 5], f32> input "y") {
  %r = dlcb.graph.matmul %x, %y : (tensor<[2, 2, 2, 3], f32>, tensor<[2, 3, 5], f32>) -> tensor<[2, 2, 2, 5], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.convolution: input of rank 3, weight of rank 4
dlcb.graph.func @main(%x: tensor<[1, 3, 5], f32> input "x", %y: tensor<[4, 3, 3, 3], f32> input "y") {
  %r = dlcb.graph.convolution %x, %y {stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1}
      : (tensor<[1, 3, 5], f32>, tensor<[4, 3, 3, 3], f32>) -> tensor<[1, 4, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.return: 1 results, 2 layouts
dlcb.graph.func @main(%x: tensor<[2], f32> input "x") {
  dlcb.graph.return %x : !dlcb.graph.tensor<[2], f32> {layouts = [#dlcb.graph.dense<[0]>, #dlcb.graph.dense<[0]>]}
}

// -----

// CHECK: dlcb.graph.return: result 0 has rank 1, its layout is
dlcb.graph.func @main(%x: tensor<[2], f32> input "x") {
  dlcb.graph.return %x : !dlcb.graph.tensor<[2], f32> {layouts = [#dlcb.graph.dense<[0, 1]>]}
}

// -----

// CHECK: is no view of it
dlcb.graph.func @main(%x: tensor<[2], f32> input "x") {
  dlcb.graph.return %x : !dlcb.graph.tensor<[2], f32> {layouts = [#dlcb.graph.dense<[0]>], views = [!dlcb.graph.tensor<[2], f32>]}
}

// -----

// CHECK: dlcb.graph.return: result 0 is a view of memory that has no layout
dlcb.graph.func @main(%x: tensor<[2], f32> input "x") {
  dlcb.graph.return %x : !dlcb.graph.tensor<[2], f32> {views = [!dlcb.graph.tensor<[1], f32, strided<[1]>>]}
}

// -----

// CHECK: dlcb.graph.take: error is ValueError, expected IndexError or RuntimeError
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x", %y: tensor<[2], i64> input "y") {
  %r = dlcb.graph.take %x, %y {axis = 0, error = "ValueError"} : (tensor<[2, 3], f32>, tensor<[2], i64>) -> tensor<[2, 3], f32>
  dlcb.graph.return
}

// -----

// CHECK: dlcb.graph.launch: a failure is the name of an error and a text, got 1 strings
dlcb.graph.func @main(%x: tensor<[2, 3], f32> input "x") {
  dlcb.graph.launch(%x) {forms = [], failures = [["IndexError"]]} : (!dlcb.graph.tensor<[2, 3], f32>) -> ()
  dlcb.graph.return
}
