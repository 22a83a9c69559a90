// RUN: dlcb-opt %s -p dlcb-collect,dlcb-solve,dlcb-simplify,dlcb-strides,dlcb-fuse,dlcb-coordinates,dlcb-schedule,dlcb-cuda,dlcb-host --split-input-file | filecheck %s

// What is checked comes before any work; a variant has a condition, blocks and integers.
// CHECK: dlcb.host.program @checked(input "x" f32 rank 2, input "y" f32 rank 1)
// CHECK: dlcb.host.check %{{.*}}, "y.shape[0] is {0} but x.shape[1] is {1} (concat, model.py:3: sizes of dim 0 differ)"
// CHECK-NOT: dlcb.host.check
// CHECK: dlcb.host.output
// CHECK: dlcb.host.launch
// CHECK-NEXT: threads {{.*}} if %{{.*}} blocks %{{.*}} (
// CHECK: dlcb.host.return
dlcb.graph.func @checked(%x: tensor<[n, m], f32> input "x", %y: tensor<[k], f32> input "y") {
  %a = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[m, n]>} : (tensor<[n, m], f32>) -> tensor<[m, n], f32>
  %b = dlcb.graph.reshape %y {shape = #dlcb.graph.dims<[k, 1]>} : (tensor<[k], f32>) -> tensor<[k, 1], f32>
  %c = dlcb.graph.concat %a, %b {axis = #builtin.int<1>} : (tensor<[m, n], f32>, tensor<[k, 1], f32>) -> tensor<[m, d0], f32> loc("model.py":3:0)
  dlcb.graph.return %c : !dlcb.graph.tensor<[m, d0], f32>
}

// -----

// Values inside live in the arena, what comes back does not; a view is a view.
// CHECK: dlcb.host.program @memory
// CHECK: dlcb.host.arena
// CHECK: %[[E:.*]] = dlcb.host.buffer
// CHECK: dlcb.host.aligned "x" 16
// CHECK: dlcb.host.launch
// CHECK: dlcb.host.library "matmul" (%[[E]]
// CHECK: %[[V:.*]] = dlcb.host.view
// CHECK: dlcb.host.return (%[[V]]
dlcb.graph.func @memory(%x: tensor<[n, n], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[n, n], f32>) -> tensor<[n, n], f32>
  %p = dlcb.graph.matmul %e, %x : (tensor<[n, n], f32>, tensor<[n, n], f32>) -> tensor<[n, n], f32>
  %t = dlcb.graph.permute %p {order = [1, 0]} : (tensor<[n, n], f32>) -> tensor<[n, n], f32>
  dlcb.graph.return %t : !dlcb.graph.tensor<[n, n], f32>
}

// -----

// An update is written into the argument itself.
// CHECK: dlcb.host.program @update(input "x" f32 rank 1 updated, input "y" f32 rank 1)
// CHECK-NOT: dlcb.host.output
// CHECK: dlcb.host.launch
// CHECK: dlcb.host.return ()
dlcb.graph.func @update(%x: tensor<[n], f32> input "x", %y: tensor<[2], f32> input "y") {
  %w = dlcb.graph.insert %x, %y {starts = #dlcb.graph.dims<[0]>, steps = #dlcb.graph.dims<[1]>} : (tensor<[n], f32>, tensor<[2], f32>) -> tensor<[n], f32>
  dlcb.graph.return %w : !dlcb.graph.tensor<[n], f32> {updates = [#builtin.int<0>]}
}

// -----

// A reduction in steps: they share an array in the arena, and a call runs either them or the kernel that does all at once.
// CHECK: dlcb.host.program @steps
// CHECK: dlcb.host.arena
// CHECK: %[[O:.*]] = dlcb.host.output
// CHECK: %[[W:.*]] = dlcb.host.buffer
// CHECK: dlcb.host.launch (%{{.*}}, %[[O]], %[[W]])
// CHECK-NEXT: _step0_
// CHECK: dlcb.host.launch (%{{.*}}, %[[O]], %[[W]])
// CHECK-NEXT: _step1_
// CHECK: dlcb.host.launch (%{{.*}}, %[[O]]) [
// CHECK-NEXT: _warp16_v4
dlcb.graph.func @steps(%x: tensor<[n], f32> input "x") {
  %s = dlcb.graph.sum %x {axes = [#builtin.int<0>]} : (tensor<[n], f32>) -> tensor<[], f32>
  dlcb.graph.return %s : !dlcb.graph.tensor<[], f32>
}
