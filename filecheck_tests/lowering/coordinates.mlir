// RUN: dlcb-opt %s -p dlcb-collect,dlcb-solve,dlcb-simplify,dlcb-strides,dlcb-fuse,dlcb-coordinates --split-input-file | filecheck %s

// Two forms: a contiguous input merges all axes, any other one has its strides as parameters.
// CHECK: dlcb.graph.launch(%x) {forms = [{kernel = @k0_exp, when = "c1", bindings = {p0 = "d0"}}, {kernel = @k1_exp, when = #builtin.int<1>, bindings = {p0 = "n", p1 = "m", p2 = "x_s0", p3 = "x_s1"}}]}
// CHECK: dlcb.coord.kernel @k0_exp params [p0] outer [p0] row []
// CHECK-NEXT: dlcb.coord.access %0 at <[1]>
// CHECK: dlcb.coord.store {{.*}} at <[1]>
// CHECK: dlcb.coord.kernel @k1_exp params [p0, p1, p2, p3] outer [p0, p1] row []
// CHECK-NEXT: dlcb.coord.access %0 at <[p2, p3]>
// CHECK: dlcb.coord.store {{.*}} at <[p1, 1]>
dlcb.graph.func @forms(%x: tensor<[n, m], f32> input "x") {
  %r = dlcb.graph.exp %x : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, m], f32>
}

// -----

// Equal kernels are one, whatever their sizes are called.
// CHECK: dlcb.graph.launch(%x) {forms = [{kernel = @k0_exp{{.*}}bindings = {p0 = "n"}}
// CHECK: dlcb.graph.launch(%y) {forms = [{kernel = @k0_exp{{.*}}bindings = {p0 = "m"}}
// CHECK: dlcb.coord.kernel @k0_exp
// CHECK: dlcb.coord.kernel @k1_exp
// CHECK-NOT: @k2
dlcb.graph.func @equal(%x: tensor<[n], f32> input "x", %y: tensor<[m], f32> input "y") {
  %a = dlcb.graph.exp %x : (tensor<[n], f32>) -> tensor<[n], f32>
  %b = dlcb.graph.exp %y : (tensor<[m], f32>) -> tensor<[m], f32>
  dlcb.graph.return %a, %b : !dlcb.graph.tensor<[n], f32>, !dlcb.graph.tensor<[m], f32>
}

// -----

// Kernels that differ in literal sizes alone are one, with these as parameters.
// CHECK: dlcb.graph.launch(%a, %b) {{.*}}kernel = @k0_add,{{.*}}bindings = {p0 = "n", p1 = #builtin.int<64>}}, {kernel = @k1_add,{{.*}}p3 = #builtin.int<64>}}]}
// CHECK: dlcb.graph.launch(%c, %d) {{.*}}kernel = @k0_add,{{.*}}bindings = {p0 = "n", p1 = #builtin.int<128>}}, {kernel = @k1_add,{{.*}}p3 = #builtin.int<128>}}]}
// CHECK: dlcb.coord.kernel @k0_add params [p0, p1] outer [p0, p1]
dlcb.graph.func @columns(%a: tensor<[n, 64], f32> input "a", %b: tensor<[64], f32> weight "b", %c: tensor<[n, 128], f32> input "c", %d: tensor<[128], f32> weight "d") {
  %e = dlcb.graph.add %a, %b : (tensor<[n, 64], f32>, tensor<[64], f32>) -> tensor<[n, 64], f32>
  %f = dlcb.graph.add %c, %d : (tensor<[n, 128], f32>, tensor<[128], f32>) -> tensor<[n, 128], f32>
  dlcb.graph.return %e, %f : !dlcb.graph.tensor<[n, 64], f32>, !dlcb.graph.tensor<[n, 128], f32>
}

// -----

// The length of a row stays literal: registers are counted by it.
// CHECK: dlcb.coord.kernel @k0_sum params [p0] outer [p0] row [64]
// CHECK: dlcb.coord.kernel @k2_sum params [p0] outer [p0] row [128]
dlcb.graph.func @rows(%a: tensor<[n, 64], f32> input "a", %c: tensor<[n, 128], f32> input "c") {
  %e = dlcb.graph.sum %a {axes = [#builtin.int<1>]} : (tensor<[n, 64], f32>) -> tensor<[n], f32>
  %f = dlcb.graph.sum %c {axes = [#builtin.int<1>]} : (tensor<[n, 128], f32>) -> tensor<[n], f32>
  dlcb.graph.return %e, %f : !dlcb.graph.tensor<[n], f32>, !dlcb.graph.tensor<[n], f32>
}

// -----

// A size that one kernel has as a literal and another one as a name is a parameter of both.
// CHECK: dlcb.graph.launch(%a, %b) {{.*}}kernel = @[[P:k0_add]],{{.*}}bindings = {p0 = "n", p1 = #builtin.int<8>}
// CHECK: dlcb.graph.launch(%c, %d) {{.*}}kernel = @[[P]],{{.*}}bindings = {p0 = "n", p1 = "m"}
dlcb.graph.func @named(%a: tensor<[n, 1], f32> input "a", %b: tensor<[1, 8], f32> weight "b", %c: tensor<[n, 1], f32> input "c", %d: tensor<[1, m], f32> input "d") {
  %e = dlcb.graph.add %a, %b : (tensor<[n, 1], f32>, tensor<[1, 8], f32>) -> tensor<[n, 8], f32>
  %f = dlcb.graph.add %c, %d : (tensor<[n, 1], f32>, tensor<[1, m], f32>) -> tensor<[n, m], f32>
  dlcb.graph.return %e, %f : !dlcb.graph.tensor<[n, 8], f32>, !dlcb.graph.tensor<[n, m], f32>
}

// -----

// A padded element is read where it is in range, else it is the fill value.
// CHECK: dlcb.coord.kernel @k0_pad
// CHECK: %[[AT:.*]] = dlcb.coord.index "add"
// CHECK: %[[LOW:.*]] = dlcb.coord.index "le" %{{.*}}, %[[AT]]
// CHECK: %[[HIGH:.*]] = dlcb.coord.index "lt" %[[AT]], %{{.*}}
// CHECK: %[[IN:.*]] = dlcb.coord.index "and" %[[LOW]], %[[HIGH]]
// CHECK: dlcb.coord.access %0 at <[1]> plus %{{.*}} if %[[IN]] else
// CHECK: dlcb.coord.scalar "select"
dlcb.graph.func @pad(%x: tensor<[n], f32> input "x") {
  %r = dlcb.graph.pad %x {low = #dlcb.graph.dims<[2]>, high = #dlcb.graph.dims<[1]>, value = 0.5 : f64} : (tensor<[n], f32>) -> tensor<[d0], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[d0], f32>
}

// -----

// Splitting a dim needs no division where the parts are the axes.
// CHECK: dlcb.coord.kernel
// CHECK-NOT: floordiv
// CHECK-NOT: "mod"
dlcb.graph.func @split(%x: tensor<[n, 8], f32> input "x", %b: tensor<[4], f32> input "b") {
  %s = dlcb.graph.reshape %x {shape = #dlcb.graph.dims<[n, 2, 4]>} : (tensor<[n, 8], f32>) -> tensor<[n, 2, 4], f32>
  %r = dlcb.graph.add %s, %b : (tensor<[n, 2, 4], f32>, tensor<[4], f32>) -> tensor<[n, 2, 4], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 2, 4], f32>
}

// -----

// A number that is no coordinate may need more than 32 bits.
// CHECK: dlcb.coord.kernel @k0_{{.*}} params [p0, p1] outer [p0] row [] ({{.*}}) at ({{.*}}) numbers [p1] {
dlcb.graph.func @number(%x: tensor<[n], i64> input "x", %k: index int "k") {
  %s = dlcb.graph.size {dim = #dlcb.graph.dims<[k]>, shape = #dlcb.graph.dims<[]>} : () -> tensor<[], i64>
  %r = dlcb.graph.mul %x, %s : (tensor<[n], i64>, tensor<[], i64>) -> tensor<[n], i64>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n], i64>
}

// -----

// A running extremum and where it was found: two scans of one row; the second needs the first.
// CHECK: dlcb.coord.kernel @k0_cummax_last_position params [{{.*}}] outer [p0] row [p1]
// CHECK: %[[X:.*]] = dlcb.coord.access
// CHECK: %[[M:.*]] = dlcb.coord.scan "maximum" %[[X]] from 0xff800000 : f32 : f32
// CHECK: dlcb.coord.scalar "eq" %[[X]], %[[M]] : (f32, f32) -> i1
// CHECK: dlcb.coord.to_element
// CHECK: dlcb.coord.scan "maximum" %{{.*}} from 0 : i64 : i64
dlcb.graph.func @running(%x: tensor<[n, m], f32> input "x") {
  %a = dlcb.graph.cummax %x {axis = 1} : (tensor<[n, m], f32>) -> tensor<[n, m], f32>
  %b = dlcb.graph.last_position %x, %a {axis = 1} : (tensor<[n, m], f32>, tensor<[n, m], f32>) -> tensor<[n, m], i64>
  dlcb.graph.return %a, %b : !dlcb.graph.tensor<[n, m], f32>, !dlcb.graph.tensor<[n, m], i64>
}

// -----

// An extremum and its position: two reductions of one row, which is read once.
// CHECK: dlcb.coord.kernel @k0_amax_position params [{{.*}}] outer [p0] row [p1]
// CHECK: %[[X:.*]] = dlcb.coord.access
// CHECK-NOT: dlcb.coord.access
// CHECK: dlcb.coord.reduce "maximum" %[[X]]
// CHECK: dlcb.coord.reduce "minimum" %{{.*}} from 9223372036854775807 : i64 : i64
dlcb.graph.func @largest(%x: tensor<[n, m], f32> input "x") {
  %a = dlcb.graph.amax %x {axes = [1], keep} : (tensor<[n, m], f32>) -> tensor<[n, 1], f32>
  %b = dlcb.graph.position %x, %a {axes = [1]} : (tensor<[n, m], f32>, tensor<[n, 1], f32>) -> tensor<[n], i64>
  dlcb.graph.return %a, %b : !dlcb.graph.tensor<[n, 1], f32>, !dlcb.graph.tensor<[n], i64>
}

// -----

// An index is checked where it is read, whatever uses it; the launch says in whose name. Memory is guarded as well.
// CHECK: dlcb.graph.launch(%x, %i) {forms = [{kernel = @[[K:k0_take]], {{.*}}], failures = {{\[\[}}"IndexError", "index {0} is out of range for dimension 0 of size {1}: embedding, ?"]]}
// CHECK: dlcb.coord.kernel @k0_take
// CHECK: %[[I:.*]] = dlcb.coord.access %1
// CHECK: %[[OK:.*]] = dlcb.coord.to_element %{{.*}} : i1
// CHECK: %[[AT:.*]] = dlcb.coord.check 0 %[[I]] if %[[OK]] of %{{.*}} : i64
// CHECK: %[[IN:.*]] = dlcb.coord.index "and"
// CHECK: dlcb.coord.access %0 at <{{.*}}> plus %{{.*}} if %[[IN]] else
dlcb.graph.func @embedding(%x: tensor<[n, 8], f32> input "x", %i: tensor<[k], i64> input "i") {
  %r = dlcb.graph.take %x, %i {axis = 0, call = "embedding", nonnegative} : (tensor<[n, 8], f32>, tensor<[k], i64>) -> tensor<[k, 8], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[k, 8], f32>
}

// -----

// What is in range by construction is not checked; nor is a division of floats, or by a number that is not 0.
// CHECK: dlcb.graph.launch
// CHECK-NOT: failures = 
// CHECK: dlcb.coord.kernel
// CHECK-NOT: dlcb.coord.check
dlcb.graph.func @unchecked(%x: tensor<[n], f32> input "x", %i: tensor<[k], i64> input "i") {
  %t = dlcb.graph.take %x, %i {axis = 0, unchecked} : (tensor<[n], f32>, tensor<[k], i64>) -> tensor<[k], f32>
  %r = dlcb.graph.floordiv %t, %t : (tensor<[k], f32>, tensor<[k], f32>) -> tensor<[k], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[k], f32>
}

// -----

// A reduction that one place of the row needs reads all of the row.
// CHECK: dlcb.coord.kernel @k0_sum_pad params [{{.*}}] outer [p0] row [4]
// CHECK: %[[X:.*]] = dlcb.coord.access %0 at <[{{.*}}]> :
// CHECK-NEXT: %[[S:.*]] = dlcb.coord.reduce "add" %[[X]]
// CHECK: dlcb.coord.scalar "select" %{{.*}}, %[[S]], %{{.*}}
dlcb.graph.func @beside(%x: tensor<[n, 4], f32> input "x") {
  %s = dlcb.graph.sum %x {axes = [1]} : (tensor<[n, 4], f32>) -> tensor<[n], f32>
  %k = dlcb.graph.reshape %s {shape = #dlcb.graph.dims<[n, 1]>} : (tensor<[n], f32>) -> tensor<[n, 1], f32>
  %r = dlcb.graph.pad %k {low = #dlcb.graph.dims<[0, 0]>, high = #dlcb.graph.dims<[0, 3]>, value = 0.0 : f64} : (tensor<[n, 1], f32>) -> tensor<[n, 4], f32>
  dlcb.graph.return %r : !dlcb.graph.tensor<[n, 4], f32>
}

// -----

// Where a guard does not hold, nothing is checked.
// CHECK: dlcb.coord.kernel @k0_floordiv_pad
// CHECK: %[[NOT:.*]] = dlcb.coord.scalar "not" %{{.*}} : (i1) -> i1
// CHECK: %[[NONZERO:.*]] = dlcb.coord.scalar "ne" %[[D:.*]], %{{.*}} : (i64, i64) -> i1
// CHECK: %[[OK:.*]] = dlcb.coord.scalar "or" %[[NOT]], %[[NONZERO]] : (i1, i1) -> i1
// CHECK: dlcb.coord.check 0 %[[D]] if %[[OK]] of %{{.*}} : i64
dlcb.graph.func @guarded(%x: tensor<[n], i64> input "x", %y: tensor<[n], i64> input "y") {
  %d = dlcb.graph.floordiv %x, %y : (tensor<[n], i64>, tensor<[n], i64>) -> tensor<[n], i64>
  %r = dlcb.graph.pad %d {low = [2], high = [1], value = 7 : i64} : (tensor<[n], i64>) -> tensor<[d0], i64>
  dlcb.graph.return %r : !dlcb.graph.tensor<[d0], i64>
}
