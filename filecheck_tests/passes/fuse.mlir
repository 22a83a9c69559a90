// RUN: dlcb-opt %s -p dlcb-collect,dlcb-solve,dlcb-simplify,dlcb-strides,dlcb-fuse --split-input-file | filecheck %s

// Softmax is one kernel.
// CHECK: dlcb.graph.func @softmax
// CHECK: %[[R:.*]] = dlcb.graph.kernel(%{{.*}} = %x : {{.*}}) -> (tensor<[n, m], f32, dense<[0, 1]>>)
// CHECK-NEXT: dlcb.graph.amax
// CHECK-NEXT: dlcb.graph.sub
// CHECK-NEXT: dlcb.graph.exp
// CHECK-NEXT: dlcb.graph.sum
// CHECK-NEXT: dlcb.graph.div
// CHECK-NEXT: dlcb.graph.yield
// CHECK-NEXT: }
// CHECK-NEXT: dlcb.graph.return %[[R]]
dlcb.graph.func @softmax(%x: tensor<[n, m], f32> input "x") {
  %r = dlcb.graph.softmax %x {axis = #builtin.int<1>} : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, m], f32>
}

// -----

// A library routine cuts; a view without memory is copied into each kernel that reads through it.
// CHECK: dlcb.graph.func @cut
// CHECK: dlcb.graph.kernel
// CHECK-NEXT: dlcb.graph.exp
// CHECK-NEXT: dlcb.graph.yield
// CHECK: dlcb.graph.matmul
// CHECK: dlcb.graph.kernel
// CHECK-NEXT: dlcb.graph.permute
// CHECK-NEXT: dlcb.graph.add
// CHECK-NEXT: dlcb.graph.yield
// CHECK-NOT: dlcb.graph.kernel
dlcb.graph.func @cut(%x: tensor<[n, n], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[n, n], f32>) -> tensor<[n, n], f32>
  %p = dlcb.graph.matmul %e, %x : (tensor<[n, n], f32>, tensor<[n, n], f32>) -> tensor<[n, n], f32>
  %t = dlcb.graph.permute %e {order = [1, 0]} : (tensor<[n, n], f32>) -> tensor<[n, n], f32>
  %r = dlcb.graph.add %p, %t : (tensor<[n, n], f32>, tensor<[n, n], f32>) -> tensor<[n, n], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, n], f32>
}

// -----

// An update is written in place; its source is computed in the same kernel; nothing is copied.
// CHECK: dlcb.graph.func @cache
// CHECK: dlcb.graph.kernel({{.*}}) -> (tensor<[b, n, 4], f32, strided<[cache_s0, cache_s1, cache_s2]>>) attributes {in_place = {{\[\[}}#builtin.int<0>, #builtin.int<1>]]}
// CHECK-NEXT: dlcb.graph.mul
// CHECK-NEXT: dlcb.graph.insert
// CHECK-NEXT: dlcb.graph.yield
// CHECK-NOT: dlcb.graph.copy
dlcb.graph.func @cache(%c: tensor<[b, n, 4], f32> input "cache", %new: tensor<[b, 1, 4], f32> input "new") {
  %m = dlcb.graph.mul %new, %new : (tensor<[b, 1, 4], f32>, tensor<[b, 1, 4], f32>) -> tensor<[b, 1, 4], f32>
  %w = dlcb.graph.insert %c, %m {starts = #dlcb.graph.dims<[0, 3, 0]>, steps = #dlcb.graph.dims<[1, 1, 1]>} : (tensor<[b, n, 4], f32>, tensor<[b, 1, 4], f32>) -> tensor<[b, n, 4], f32>
  dlcb.graph.return %w : !dlcb.graph.tensor<[b, n, 4], f32> {updates = [#builtin.int<0>]}
}

// -----

// Exponentials are not computed once for every window that holds them; what is cheap is.
// CHECK: dlcb.graph.func @windows
// CHECK: dlcb.graph.kernel
// CHECK-NEXT: dlcb.graph.exp
// CHECK-NEXT: dlcb.graph.yield
// CHECK: dlcb.graph.kernel
// CHECK-NEXT: dlcb.graph.max_pool
// CHECK-NEXT: dlcb.graph.yield
// CHECK: dlcb.graph.kernel
// CHECK-NEXT: dlcb.graph.relu
// CHECK-NEXT: dlcb.graph.max_pool
// CHECK-NEXT: dlcb.graph.yield
dlcb.graph.func @windows(%x: tensor<[n, 8], f32> input "x") {
  %e = dlcb.graph.exp %x : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  %p = dlcb.graph.max_pool %e {kernel = [#builtin.int<3>], stride = [#builtin.int<1>], padding = [#builtin.int<1>], dilation = [#builtin.int<1>]} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  %c = dlcb.graph.relu %x : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  %q = dlcb.graph.max_pool %c {kernel = [#builtin.int<3>], stride = [#builtin.int<1>], padding = [#builtin.int<1>], dilation = [#builtin.int<1>]} : (tensor<[n, 8], f32>) -> tensor<[n, 8], f32>
  dlcb.graph.return %p, %q : !dlcb.graph.tensor<[n, 8], f32>, !dlcb.graph.tensor<[n, 8], f32>
}

// -----

// A bias that is added for one other kernel only is added there, although that walks other dims and reads the sum twice.
// CHECK: dlcb.graph.func @bias_before_norm
// CHECK: dlcb.graph.kernel(%{{.*}} = %x : {{.*}} = %b : 
// CHECK: dlcb.graph.add
// CHECK: dlcb.graph.mean
// CHECK: dlcb.graph.sub
// CHECK-NOT: dlcb.graph.kernel
// CHECK: dlcb.graph.return
dlcb.graph.func @bias_before_norm(%x: tensor<[n, 8, h, w], f32> input "x", %b: tensor<[8, 1, 1], f32> weight "b") {
  %a = dlcb.graph.add %x, %b : (tensor<[n, 8, h, w], f32>, tensor<[8, 1, 1], f32>) -> tensor<[n, 8, h, w], f32>
  %p = dlcb.graph.permute %a {order = [#builtin.int<0>, #builtin.int<2>, #builtin.int<3>, #builtin.int<1>]} : (tensor<[n, 8, h, w], f32>) -> tensor<[n, h, w, 8], f32>
  %m = dlcb.graph.mean %p {axes = [#builtin.int<3>], keep} : (tensor<[n, h, w, 8], f32>) -> tensor<[n, h, w, 1], f32>
  %r = dlcb.graph.sub %p, %m : (tensor<[n, h, w, 8], f32>, tensor<[n, h, w, 1], f32>) -> tensor<[n, h, w, 8], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, h, w, 8], f32>
}

// -----

// What is not cheap is not computed twice.
// CHECK: dlcb.graph.func @sigmoid_before_norm
// CHECK: dlcb.graph.kernel
// CHECK: dlcb.graph.sigmoid
// CHECK: dlcb.graph.kernel
// CHECK: dlcb.graph.mean
dlcb.graph.func @sigmoid_before_norm(%x: tensor<[n, 8, h, w], f32> input "x") {
  %a = dlcb.graph.sigmoid %x : (tensor<[n, 8, h, w], f32>) -> tensor<[n, 8, h, w], f32>
  %p = dlcb.graph.permute %a {order = [#builtin.int<0>, #builtin.int<2>, #builtin.int<3>, #builtin.int<1>]} : (tensor<[n, 8, h, w], f32>) -> tensor<[n, h, w, 8], f32>
  %m = dlcb.graph.mean %p {axes = [#builtin.int<3>], keep} : (tensor<[n, h, w, 8], f32>) -> tensor<[n, h, w, 1], f32>
  %r = dlcb.graph.sub %p, %m : (tensor<[n, h, w, 8], f32>, tensor<[n, h, w, 1], f32>) -> tensor<[n, h, w, 8], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, h, w, 8], f32>
}
