// RUN: dlcb-opt %s --stop-after coordinates --trace-rules 2>&1 >/dev/null | filecheck %s
// RUN: dlcb-opt %s --stop-after coordinates 2>&1 >/dev/null | filecheck %s --check-prefix SILENT --allow-empty

// Rules of every level, in the order of the stages: on graphs, then on the coordinates of kernels.
// CHECK: graph MergePermutes: %b = dlcb.graph.permute %a
// CHECK-SAME: -> %b = dlcb.graph.permute %x
// CHECK-SAME: // model.py:8
// CHECK-NEXT: graph DropIdentityPermute: %b = dlcb.graph.permute %x
// CHECK-SAME: -> %x // model.py:8
// CHECK: coordinate GuardRefuted: 0 <= $o0 - n -> never holds // concat: model.py:9
// CHECK: coordinate GuardProved: $o0 < n -> proved // concat: model.py:9
// SILENT-NOT: graph
// SILENT-NOT: coordinate
dlcb.graph.func @main(%x: tensor<[n, 8], f32> input "x") {
  %a = dlcb.graph.permute %x {order = [#builtin.int<1>, #builtin.int<0>]} : (tensor<[n, 8], f32>) -> tensor<[8, n], f32> loc("model.py":7:0)
  %b = dlcb.graph.permute %a {order = [#builtin.int<1>, #builtin.int<0>]} : (tensor<[8, n], f32>) -> tensor<[n, 8], f32> loc("model.py":8:0)
  %c = dlcb.graph.concat %b, %b {axis = 0} : (tensor<[n, 8], f32>, tensor<[n, 8], f32>) -> tensor<[d0, 8], f32> loc("model.py":9:0)
  %d = dlcb.graph.slice %c {starts = [0, 1], shape = [n, 3], steps = [1, 1]} : (tensor<[d0, 8], f32>) -> tensor<[n, 3], f32> loc("model.py":10:0)
  %r = dlcb.graph.exp %d : (tensor<[n, 3], f32>) -> tensor<[n, 3], f32> loc("model.py":11:0)
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 3], f32>
}
