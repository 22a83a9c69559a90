// RUN: dlcb-opt %s -p dlcb-schedule --split-input-file | filecheck %s

// No row: vectors from the widest, then one by one; 64 bits for what does not fit into 32.
// CHECK: dlcb.coord.kernel @flat
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 4, items = 4, stage = none, index = 32>
// CHECK-SAME: vector = 1, items = 1, stage = none, index = 32
// CHECK-SAME: vector = 4, items = 4, stage = none, index = 64
// CHECK-SAME: vector = 1, items = 1, stage = none, index = 64
dlcb.coord.kernel @flat params [p0] outer [p0] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Literal sizes need no 64 bits.
// CHECK: dlcb.coord.kernel @small
// CHECK-NOT: index = 64
dlcb.coord.kernel @small params [] outer [1000] row [] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f16> -> f16
  dlcb.coord.store %v, %o at <[1]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// Rows along memory: warps, blocks, long loops.
// CHECK: dlcb.coord.kernel @rows
// CHECK-SAME: row = warp
// CHECK-SAME: row = block
// CHECK-SAME: items = 0
dlcb.coord.kernel @rows params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  %d = dlcb.coord.scalar "div" %v, %s : (f32, f32) -> f32
  dlcb.coord.store %d, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}
