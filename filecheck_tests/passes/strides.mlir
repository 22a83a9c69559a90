// RUN: dlcb-opt %s -p dlcb-collect,dlcb-solve,dlcb-simplify,dlcb-strides --split-input-file | filecheck %s

// An input may lie anyhow; what is computed is dense; a view that only kernels read has no layout.
// CHECK: dlcb.shape.symbol "x_s0" stride "x" 0
// CHECK: dlcb.graph.func @anyhow(%x: tensor<[n, m], f32, strided<[x_s0, x_s1]>> input "x")
// CHECK: dlcb.graph.permute %x {order = [1, 0]} : {{.*}} -> tensor<[m, n], f32>{{$}}
// CHECK: dlcb.graph.exp {{.*}} -> tensor<[m, n], f32, dense<[0, 1]>>
dlcb.graph.func @anyhow(%x: tensor<[n, m], f32> input "x") {
  %t = dlcb.graph.permute %x {order = [1, 0]} : (tensor<[n, m], f32>) -> tensor<[m, n], f32>
  %r = dlcb.graph.exp %t : (tensor<[m, n], f32>) -> tensor<[m, n], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[m, n], f32>
}

// -----

// A view that the caller or a library routine needs is one.
// CHECK: dlcb.graph.func @needed
// CHECK: dlcb.graph.permute {{.*}} -> tensor<[m, n], f32, strided<[x_s1, x_s0]>>
// CHECK: dlcb.graph.matmul {{.*}} -> tensor<[m, m], f32, dense<[0, 1]>>
dlcb.graph.func @needed(%x: tensor<[n, m], f32> input "x") {
  %t = dlcb.graph.permute %x {order = [1, 0]} : (tensor<[n, m], f32>) -> tensor<[m, n], f32>
  %r = dlcb.graph.matmul %t, %x : (tensor<[m, n], f32>, tensor<[n, m], f32>) -> tensor<[m, m], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[m, m], f32>
}

// -----

// A reshape that the strides do not allow as a view for every size is one of a copy.
// CHECK: dlcb.graph.func @computed
// CHECK: %[[C:.*]] = dlcb.graph.copy %x {{.*}} -> tensor<[n, m], f32, dense<[0, 1]>>
// CHECK: dlcb.graph.reshape %[[C]] {{.*}} -> tensor<[d0], f32, strided<[1]>>
dlcb.shape.system @computed {
  %n = dlcb.shape.symbol "n" size "x" 0
  %m = dlcb.shape.symbol "m" size "x" 1
  %p = dlcb.shape.mul %n, %m
  %d = dlcb.shape.define "d0" = %p
}
dlcb.graph.func @computed(%x: tensor<[n, m], f32> input "x") {
  %r = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[d0]>} : (tensor<[n, m], f32>) -> tensor<[d0], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[d0], f32>
}

// -----

// What is written into an argument lies as the argument does, and so do views of it.
// CHECK: dlcb.graph.func @written
// CHECK: %e = dlcb.graph.exp {{.*}} -> tensor<[n, m], f32, dense<[0, 1]>>
// CHECK: %[[W:.*]] = dlcb.graph.insert %x, %e {{.*}} -> tensor<[n, m], f32, strided<[x_s0, x_s1]>>
// CHECK: %[[T:.*]] = dlcb.graph.permute %[[W]] {{.*}} -> tensor<[m, n], f32, strided<[x_s1, x_s0]>>
// CHECK: dlcb.graph.return %[[W]], %[[T]]
dlcb.graph.func @written(%x: tensor<[n, m], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  %t = dlcb.graph.permute %e {order = [1, 0]} : (tensor<[n, m], f32>) -> tensor<[m, n], f32>
  dlcb.graph.return %e, %t : !dlcb.graph.tensor<[n, m], f32>, !dlcb.graph.tensor<[m, n], f32> {updates = [#builtin.int<0>], aliases = [[#builtin.int<0>, #builtin.int<0>]]}
}

// -----

// A reader of the old value that comes after the writer reads a copy.
// CHECK: dlcb.graph.func @late
// CHECK: %[[C:.*]] = dlcb.graph.copy %x
// CHECK-NEXT: %w = dlcb.graph.insert %x, %y
// CHECK-NEXT: dlcb.graph.add %[[C]], %w
dlcb.graph.func @late(%x: tensor<[n], f32> input "x", %y: tensor<[2], f32> input "y") {
  %w = dlcb.graph.insert %x, %y {starts = #dlcb.graph.dims<[1]>, steps = #dlcb.graph.dims<[1]>} : (tensor<[n], f32>, tensor<[2], f32>) -> tensor<[n], f32>
  %r = dlcb.graph.add %x, %w : (tensor<[n], f32>, tensor<[n], f32>) -> tensor<[n], f32>
  dlcb.graph.return %w, %r : !dlcb.graph.tensor<[n], f32>, !dlcb.graph.tensor<[n], f32> {updates = [#builtin.int<0>]}
}

// -----

// A chain with a half-precision convolution lies channels-last; what is returned is contiguous.
// CHECK: dlcb.graph.func @channels_last
// CHECK: dlcb.graph.copy %x {{.*}} -> tensor<[n, 8, h, w], f16, dense<[0, 2, 3, 1]>>
// CHECK: dlcb.graph.convolution {{.*}} -> tensor<[n, 4, h, w], f16, dense<[0, 2, 3, 1]>>
// CHECK: dlcb.graph.return %{{.*}} : !dlcb.graph.tensor<[n, 4, h, w], f16, dense<[0, 1, 2, 3]>>
dlcb.graph.func @channels_last(%x: tensor<[n, 8, h, w], f16> input "x", %k: tensor<[4, 8, 1, 1], f16> input "k") {
  %y = dlcb.graph.convolution %x, %k {stride = [#builtin.int<1>, #builtin.int<1>], padding = [#builtin.int<0>, #builtin.int<0>], dilation = [#builtin.int<1>, #builtin.int<1>], groups = #builtin.int<1>} : (tensor<[n, 8, h, w], f16>, tensor<[4, 8, 1, 1], f16>) -> tensor<[n, 4, h, w], f16>
  %r = dlcb.graph.exp %y : (tensor<[n, 4, h, w], f16>) -> tensor<[n, 4, h, w], f16>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 4, h, w], f16>
}

// -----

// A result lies as the return says: a kernel writes it so, and what it is made of lies alike.
// CHECK: dlcb.graph.func @asked
// CHECK: dlcb.graph.exp {{.*}} -> tensor<[n, m], f32, dense<[1, 0]>>
// CHECK: dlcb.graph.relu {{.*}} -> tensor<[n, m], f32, dense<[1, 0]>>
dlcb.graph.func @asked(%x: tensor<[n, m], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  %r = dlcb.graph.relu %e : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, m], f32> {layouts = [#dlcb.graph.dense<[1, 0]>]}
}

// -----

// A library result that lies otherwise is copied.
// CHECK: dlcb.graph.func @otherwise
// CHECK: %[[P:.*]] = dlcb.graph.matmul {{.*}} -> tensor<[n, 4], f32, dense<[0, 1]>>
// CHECK: %[[C:.*]] = dlcb.graph.copy %[[P]] {{.*}} -> tensor<[n, 4], f32, dense<[1, 0]>>
// CHECK: dlcb.graph.return %[[C]]
dlcb.graph.func @otherwise(%x: tensor<[n, 3], f32> input "x", %w: tensor<[3, 4], f32> weight "w") {
  %p = dlcb.graph.matmul %x, %w : (tensor<[n, 3], f32>, tensor<[3, 4], f32>) -> tensor<[n, 4], f32>
  dlcb.graph.return %p : !dlcb.graph.tensor<[n, 4], f32> {layouts = [#dlcb.graph.dense<[1, 0]>]}
}

// -----

// A result that is to be dense is no view; one that is a view by its return needs none.
// CHECK: dlcb.graph.func @dense_or_view
// CHECK: %e = dlcb.graph.exp {{.*}} -> tensor<[n, m], f32, dense<[0, 1]>>
// CHECK: %t = dlcb.graph.permute %e {{.*}} -> tensor<[m, n], f32>
// CHECK: %[[C:.*]] = dlcb.graph.copy %t {{.*}} -> tensor<[m, n], f32, dense<[0, 1]>>
// CHECK: dlcb.graph.return %[[C]], %e {{.*}} views = [unit, !dlcb.graph.tensor<[m, n], f32, strided<[1, m]>>]
dlcb.graph.func @dense_or_view(%x: tensor<[n, m], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  %t = dlcb.graph.permute %e {order = [1, 0]} : (tensor<[n, m], f32>) -> tensor<[m, n], f32>
  dlcb.graph.return %t, %e : !dlcb.graph.tensor<[m, n], f32>, !dlcb.graph.tensor<[n, m], f32>
      {layouts = [#dlcb.graph.dense<[0, 1]>, #dlcb.graph.dense<[0, 1]>], views = [unit, !dlcb.graph.tensor<[m, n], f32, strided<[1, m]>>]}
}

// -----

// A weight, and one that a batch norm was folded into, is laid channels-last once, in @weights: no copy in a call.
// CHECK: dlcb.graph.func @weights
// CHECK-DAG: dlcb.graph.mul {{.*}} -> tensor<[4, 8, 3, 3], f16, dense<[0, 2, 3, 1]>>
// CHECK-DAG: dlcb.graph.copy %{{.*}} -> tensor<[4, 4, 3, 3], f16, dense<[0, 2, 3, 1]>>
// CHECK: dlcb.graph.func @main
// CHECK: dlcb.graph.copy %x
// CHECK-NOT: dlcb.graph.copy
// CHECK: dlcb.graph.convolution
// CHECK-NOT: dlcb.graph.copy
// CHECK: dlcb.graph.convolution
dlcb.graph.func @main(%x: tensor<[n, 8, h, w], f16> input "x", %k: tensor<[4, 8, 3, 3], f16> weight "k", %m: tensor<[4], f16> weight "m",
                      %v: tensor<[4], f16> weight "v", %g: tensor<[4], f16> weight "g", %b: tensor<[4], f16> weight "b", %j: tensor<[4, 4, 3, 3], f16> weight "j") {
  %y = dlcb.graph.convolution %x, %k {stride = [#builtin.int<1>, #builtin.int<1>], padding = [#builtin.int<1>, #builtin.int<1>], dilation = [#builtin.int<1>, #builtin.int<1>], groups = #builtin.int<1>} : (tensor<[n, 8, h, w], f16>, tensor<[4, 8, 3, 3], f16>) -> tensor<[n, 4, h, w], f16>
  %z = dlcb.graph.batch_norm %y, %m, %v, %g, %b {eps = 1.0e-05 : f64} : (tensor<[n, 4, h, w], f16>, tensor<[4], f16>, tensor<[4], f16>, tensor<[4], f16>, tensor<[4], f16>) -> tensor<[n, 4, h, w], f16>
  %q = dlcb.graph.relu %z : (tensor<[n, 4, h, w], f16>) -> tensor<[n, 4, h, w], f16>
  %r = dlcb.graph.convolution %q, %j {stride = [#builtin.int<1>, #builtin.int<1>], padding = [#builtin.int<1>, #builtin.int<1>], dilation = [#builtin.int<1>, #builtin.int<1>], groups = #builtin.int<1>} : (tensor<[n, 4, h, w], f16>, tensor<[4, 4, 3, 3], f16>) -> tensor<[n, 4, h, w], f16>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 4, h, w], f16>
}

// -----

// A product of points takes the bias of a norm and a relu along, and what it makes is read where it lies.
// CHECK: dlcb.graph.func @main
// CHECK: %[[ROWS:.*]] = dlcb.graph.reshape {{.*}} -> tensor<[d0, 8], f16, dense<[0, 1]>>
// CHECK: dlcb.graph.matmul_relu %[[ROWS]], {{.*}} -> tensor<[d0, 4], f16, dense<[0, 1]>>
// CHECK-NOT: dlcb.graph.copy
// CHECK: %q = dlcb.graph.permute {{.*}} -> tensor<[n, 4, h, w], f16>
// CHECK-NEXT: dlcb.graph.depthwise %q,
dlcb.graph.func @main(%x: tensor<[n, 8, h, w], f16> input "x", %k: tensor<[4, 8, 1, 1], f16> weight "k", %m: tensor<[4], f16> weight "m",
                      %v: tensor<[4], f16> weight "v", %g: tensor<[4], f16> weight "g", %b: tensor<[4], f16> weight "b", %j: tensor<[4, 1, 3, 3], f16> weight "j") {
  %y = dlcb.graph.convolution %x, %k {stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1} : (tensor<[n, 8, h, w], f16>, tensor<[4, 8, 1, 1], f16>) -> tensor<[n, 4, h, w], f16>
  %z = dlcb.graph.batch_norm %y, %m, %v, %g, %b {eps = 1.0e-05 : f64} : (tensor<[n, 4, h, w], f16>, tensor<[4], f16>, tensor<[4], f16>, tensor<[4], f16>, tensor<[4], f16>) -> tensor<[n, 4, h, w], f16>
  %q = dlcb.graph.relu %z : (tensor<[n, 4, h, w], f16>) -> tensor<[n, 4, h, w], f16>
  %r = dlcb.graph.convolution %q, %j {stride = [1, 1], padding = [1, 1], dilation = [1, 1], groups = 4} : (tensor<[n, 4, h, w], f16>, tensor<[4, 1, 3, 3], f16>) -> tensor<[n, 4, h, w], f16>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 4, h, w], f16>
}

// -----

// What a convolution reads lies channels-last if it is computed elementwise, and what that is computed of; a view that
// lies so already is read as it is.
// CHECK: dlcb.graph.func @feeds_convolutions
// CHECK: %[[V:.*]] = dlcb.graph.permute %e {{.*}} strided<[{{.*}}, 1, {{.*}}, 8]>>
// CHECK-NEXT: %c = dlcb.graph.convolution %[[V]],
// CHECK: %s = dlcb.graph.add %v, %y {{.*}} dense<[0, 2, 3, 1]>>
// CHECK: %t = dlcb.graph.add %s, %z {{.*}} dense<[0, 2, 3, 1]>>
// CHECK-NEXT: %d = dlcb.graph.convolution %t,
dlcb.graph.func @feeds_convolutions(%x: tensor<[n, h, w, 8], f16> input "x", %y: tensor<[n, 8, h, w], f16> input "y", %z: tensor<[n, 8, h, w], f16> input "z", %k: tensor<[8, 8, 1, 1], f16> weight "k") {
  %e = dlcb.graph.exp %x : (tensor<[n, h, w, 8], f16>) -> tensor<[n, h, w, 8], f16>
  %v = dlcb.graph.permute %e {order = [#builtin.int<0>, #builtin.int<3>, #builtin.int<1>, #builtin.int<2>]} : (tensor<[n, h, w, 8], f16>) -> tensor<[n, 8, h, w], f16>
  %c = dlcb.graph.convolution %v, %k {stride = [#builtin.int<1>, #builtin.int<1>], padding = [#builtin.int<0>, #builtin.int<0>], dilation = [#builtin.int<1>, #builtin.int<1>], groups = #builtin.int<1>} : (tensor<[n, 8, h, w], f16>, tensor<[8, 8, 1, 1], f16>) -> tensor<[n, 8, h, w], f16>
  %s = dlcb.graph.add %v, %y : (tensor<[n, 8, h, w], f16>, tensor<[n, 8, h, w], f16>) -> tensor<[n, 8, h, w], f16>
  %t = dlcb.graph.add %s, %z : (tensor<[n, 8, h, w], f16>, tensor<[n, 8, h, w], f16>) -> tensor<[n, 8, h, w], f16>
  %d = dlcb.graph.convolution %t, %k {stride = [#builtin.int<1>, #builtin.int<1>], padding = [#builtin.int<0>, #builtin.int<0>], dilation = [#builtin.int<1>, #builtin.int<1>], groups = #builtin.int<1>} : (tensor<[n, 8, h, w], f16>, tensor<[8, 8, 1, 1], f16>) -> tensor<[n, 8, h, w], f16>
  %r = dlcb.graph.add %c, %d : (tensor<[n, 8, h, w], f16>, tensor<[n, 8, h, w], f16>) -> tensor<[n, 8, h, w], f16>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 8, h, w], f16>
}

// -----

// A view that only a kernel reads, since what follows it can't be one, needs no memory.
// CHECK: dlcb.graph.func @idle
// CHECK: dlcb.graph.permute %e {{.*}} -> tensor<[m, n, 4], f32>
// CHECK-NEXT: dlcb.graph.reshape %{{.*}} -> tensor<[d, 4], f32, dense<[0, 1]>>
// CHECK-NEXT: dlcb.graph.matmul
dlcb.graph.func @idle(%x: tensor<[n, m, 4], f32> input "x", %w: tensor<[4, 2], f32> weight "w", %y: tensor<[d, 2], f32> input "y") {
  %e = dlcb.graph.exp %x : (tensor<[n, m, 4], f32>) -> tensor<[n, m, 4], f32>
  %p = dlcb.graph.permute %e {order = [#builtin.int<1>, #builtin.int<0>, #builtin.int<2>]} : (tensor<[n, m, 4], f32>) -> tensor<[m, n, 4], f32>
  %a = dlcb.graph.reshape %p {shape = #dlcb.graph.dims<[d, 4]>} : (tensor<[m, n, 4], f32>) -> tensor<[d, 4], f32>
  %c = dlcb.graph.matmul %a, %w : (tensor<[d, 4], f32>, tensor<[4, 2], f32>) -> tensor<[d, 2], f32>
  %r = dlcb.graph.add %c, %y : (tensor<[d, 2], f32>, tensor<[d, 2], f32>) -> tensor<[d, 2], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[d, 2], f32>
}

// -----

// Concatenations that begin alike share memory, which lies as what is written into it does.
// CHECK: dlcb.graph.func @dense
// CHECK: %[[C:.*]] = dlcb.graph.convolution
// CHECK: %[[M:.*]] = dlcb.graph.empty {shape = [n, 20, h, w]} : () -> tensor<[n, 20, h, w], f16, dense<[0, 2, 3, 1]>>
// CHECK: %[[A:.*]] = dlcb.graph.insert %[[M]], %[[C]] {starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]}
// CHECK: %[[B:.*]] = dlcb.graph.insert %[[A]], %b {starts = [0, 4, 0, 0]{{.*}} -> tensor<[n, 20, h, w], f16, dense<[0, 2, 3, 1]>>
// CHECK: dlcb.graph.slice %[[B]] {starts = [0, 0, 0, 0], shape = [n, 8, h, w]
// CHECK: %[[D:.*]] = dlcb.graph.insert %[[B]], %c {starts = [0, 8, 0, 0]
// CHECK: dlcb.graph.slice %[[D]] {starts = [0, 0, 0, 0], shape = [n, 12, h, w]
dlcb.graph.func @dense(%x: tensor<[n, 3, h, w], f16> input "x", %f: tensor<[4, 3, 1, 1], f16> weight "f", %b: tensor<[n, 4, h, w], f16> input "b", %c: tensor<[n, 4, h, w], f16> input "c", %d: tensor<[n, 4, h, w], f16> input "d", %e: tensor<[n, 4, h, w], f16> input "e") {
  %a = dlcb.graph.convolution %x, %f {stride = [1, 1], padding = [0, 0], dilation = [1, 1], groups = 1} : (tensor<[n, 3, h, w], f16>, tensor<[4, 3, 1, 1], f16>) -> tensor<[n, 4, h, w], f16>
  %0 = dlcb.graph.concat %a, %b {axis = 1} : (tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>) -> tensor<[n, 8, h, w], f16>
  %r0 = dlcb.graph.mean %0 {axes = [1, 2, 3]} : (tensor<[n, 8, h, w], f16>) -> tensor<[n], f16>
  %1 = dlcb.graph.concat %a, %b, %c {axis = 1} : (tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>) -> tensor<[n, 12, h, w], f16>
  %r1 = dlcb.graph.mean %1 {axes = [1, 2, 3]} : (tensor<[n, 12, h, w], f16>) -> tensor<[n], f16>
  %2 = dlcb.graph.concat %a, %b, %c, %d {axis = 1} : (tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>) -> tensor<[n, 16, h, w], f16>
  %r2 = dlcb.graph.mean %2 {axes = [1, 2, 3]} : (tensor<[n, 16, h, w], f16>) -> tensor<[n], f16>
  %3 = dlcb.graph.concat %a, %b, %c, %d, %e {axis = 1} : (tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>, tensor<[n, 4, h, w], f16>) -> tensor<[n, 20, h, w], f16>
  %r3 = dlcb.graph.mean %3 {axes = [1, 2, 3]} : (tensor<[n, 20, h, w], f16>) -> tensor<[n], f16>
  dlcb.graph.return %r0, %r1, %r2, %r3 : !dlcb.graph.tensor<[n], f16>, !dlcb.graph.tensor<[n], f16>, !dlcb.graph.tensor<[n], f16>, !dlcb.graph.tensor<[n], f16>
}
