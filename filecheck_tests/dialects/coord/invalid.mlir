// RUN: dlcb-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: dlcb.coord.kernel: size m is no parameter
dlcb.coord.kernel @k params [n] outer [m] row [] (%x: !dlcb.coord.buffer<f32>) at (%i) {
}

// -----

// CHECK: dlcb.coord.kernel: size m is no parameter
dlcb.coord.kernel @k params [n] outer [n] row [m] (%x: !dlcb.coord.buffer<f32>) at (%i, %k) {
}

// -----

// CHECK: dlcb.coord.kernel: 1 coordinates for 1 outer and 1 row axes
dlcb.coord.kernel @k params [n] outer [n] row [4] (%x: !dlcb.coord.buffer<f32>) at (%i) {
}

// -----

// CHECK: buffer: element type index is none of f16, bf16, f32, f64, i1, ui8, i8, i16, i32, i64
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<index>) at (%i) {
}

// -----

// CHECK: dlcb.coord.index: pow is none of add, sub, mul, floordiv, mod
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i) {
  %a = dlcb.coord.index "pow" %i, %i
}

// -----

// CHECK: dlcb.coord.scalar: no scalar function blend
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  %a = dlcb.coord.scalar "blend" %v : (f32) -> f32
}

// -----

// CHECK: dlcb.coord.scalar: add takes 2 operands, got 1
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  %a = dlcb.coord.scalar "add" %v : (f32) -> f32
}

// -----

// CHECK: operand is used with type index, but has been previously used or defined with type f32
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  %a = dlcb.coord.index "add" %i, %v
}

// -----

// CHECK: schedule: row = grid, expected one of none, warp, block, thread
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = grid, threads = 256, vector = 1, items = 0, stage = none, index = 32>] {
}

// -----

// CHECK: schedule: 100 threads, expected a multiple of 32 up to 1024
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = none, threads = 100, vector = 1, items = 0, stage = none, index = 32>] {
}

// -----

// CHECK: schedule: 2048 threads, expected a multiple of 32 up to 1024
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = none, threads = 2048, vector = 1, items = 0, stage = none, index = 32>] {
}

// -----

// CHECK: schedule: vector = 3, expected 1, 2, 4, 8 or 16
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 3, items = 0, stage = none, index = 32>] {
}

// -----

// CHECK: schedule: stage = shared, expected one of none, registers
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 0, stage = shared, index = 32>] {
}

// -----

// CHECK: schedule: 0 items staged in registers, expected 1 to 64
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = warp, threads = 256, vector = 1, items = 0, stage = registers, index = 32>] {
}

// -----

// CHECK: schedule: 6 items are not a multiple of the vector, 4
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = warp, threads = 256, vector = 4, items = 6, stage = registers, index = 32>] {
}

// -----

// CHECK: schedule: index = 16, expected 32 or 64
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 0, stage = none, index = 16>] {
}

// -----

// CHECK: schedule: expected the fields row, threads, vector, items, stage, index in this order
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i)
    schedules [#dlcb.coord.schedule<threads = 32, row = none>] {
}

// -----

// CHECK: schedule: a column of 0 items, expected 1 or more
dlcb.coord.kernel @k params [n] outer [n] row [n] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = column, threads = 256, vector = 1, items = 0, stage = none, index = 32>] {
}

// -----

// CHECK: schedule: start = late, expected shifted
dlcb.coord.kernel @k params [n] outer [n] row [n] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = block, threads = 256, vector = 4, items = 0, stage = none, index = 32, start = late>] {
}

// -----

// CHECK: schedule: row = block, vector = 1, start = shifted, expected a warp's or a block's row in vectors
dlcb.coord.kernel @k params [n] outer [n] row [n] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = block, threads = 256, vector = 1, items = 0, stage = none, index = 32, start = shifted>] {
}

// -----

// CHECK: schedule: a step of row = warp, expected block or column
dlcb.coord.kernel @k params [n] outer [n] row [n] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = warp, threads = 256, vector = 1, items = 0, stage = none, index = 32, step = 0>] {
}

// -----

// CHECK: schedule: a tile of 0 items, expected 1 or more
dlcb.coord.kernel @k params [n] outer [n] row [n] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = tile, threads = 256, vector = 1, items = 0, stage = none, index = 32>] {
}

// -----

// CHECK: schedule: a transpose of row = thread, expected none and no step
dlcb.coord.kernel @k params [n] outer [n, n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = thread, threads = 256, vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 1>>] {
}

// -----

// CHECK: schedule: 128 threads of 16 items in a tile of 4096
dlcb.coord.kernel @k params [n] outer [n, n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = none, threads = 128, vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 1>>] {
}

// -----

// CHECK: schedule: 1024 threads, vector = 8, walk no whole lines of 64 in 4096
dlcb.coord.kernel @k params [n] outer [n, n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = none, threads = 1024, vector = 1, items = 4, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>>] {
}

// -----

// CHECK: transpose: vector = 3, expected 1, 2, 4, 8 or 16, and along at most
dlcb.coord.kernel @k params [n] outer [n, n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 3>>] {
}

// -----

// CHECK: transpose: across = 48, expected one of 8, 16, 32, 64, 128, 256
dlcb.coord.kernel @k params [n] outer [n, n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 48, vector = 1>>] {
}

// -----

// CHECK: transpose: axis = -1, expected an outer axis
dlcb.coord.kernel @k params [n] outer [n, n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i, %k)
    schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = -1, along = 64, across = 64, vector = 1>>] {
}

// -----

// CHECK: dlcb.coord.scan: the row has 2 axes, expected one
dlcb.coord.kernel @k params [n] outer [] row [n, n] (%x: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[n, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.scan "add" %v from 0.0 : f32 : f32
}

// -----

// CHECK: dlcb.coord.check: number is -1, expected 0 or more
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<i64>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<i64> -> i64
  %c = dlcb.coord.constant true : i1
  %s = dlcb.coord.check -1 %v if %c of %i : i64
}

// -----

// CHECK: dlcb.coord.check: value is f32, expected an integer
dlcb.coord.kernel @k params [n] outer [n] row [] (%x: !dlcb.coord.buffer<f32>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  %c = dlcb.coord.constant true : i1
  %s = dlcb.coord.check 0 %v if %c of %i : f32
}
