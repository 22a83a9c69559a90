// RUN: dlcb-opt %s -p dlcb-cuda --split-input-file | filecheck %s

// Whole vectors, then the rest one by one.
// CHECK: dlcb.cuda.kernel @flat_v4(%b0: !dlcb.cuda.ptr<f32>, %b1: !dlcb.cuda.ptr<f32>, %p0: i32) threads 256
// CHECK-SAME: dlcb.integers = ["value p0 1"]
// CHECK: dlcb.cuda.load_vector
// CHECK: dlcb.cuda.store_vector
// CHECK: dlcb.cuda.for
// CHECK: dlcb.cuda.load
// CHECK: dlcb.cuda.store
dlcb.coord.kernel @flat params [p0] outer [p0] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i) schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 4, items = 4, stage = none, index = 32>] {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A tile: vectors along what is read into shared memory, a barrier, vectors along what is stored. How many tiles there are
// is the host program's to say.
// CHECK: dlcb.cuda.kernel @turned_64x64_v8_v4(%b0: !dlcb.cuda.ptr<f16>, %b1: !dlcb.cuda.ptr<f32>, %b2: !dlcb.cuda.ptr<f32>, %columns: i32
// CHECK-SAME: dlcb.integers = ["value columns 1", "mul columns 1", "shift columns 1", "value bands 1"
// CHECK-SAME: dlcb.space = {{.*}}across = {aligned = [#builtin.int<1>, #builtin.int<2>], divisible = #dlcb.graph.dims<[p1]>}, along = {aligned = [#builtin.int<0>], divisible = #dlcb.graph.dims<[p0]>}
// CHECK: dlcb.cuda.shared : !dlcb.cuda.shared<f16, 4224>
// CHECK: dlcb.cuda.load_vector %b0
// CHECK: dlcb.cuda.load_vector %b1
// CHECK: dlcb.cuda.barrier
// CHECK-NOT: dlcb.cuda.load_vector
// CHECK: dlcb.cuda.if
// CHECK: dlcb.cuda.store_vector
dlcb.coord.kernel @turned params [p0, p1] outer [p0, p1] row [] (%x: !dlcb.coord.buffer<f16>, %y: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 4, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>>] {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f16> -> f16
  %w = dlcb.coord.access %y at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %c = dlcb.coord.scalar "cast" %v : (f16) -> f32
  %s = dlcb.coord.scalar "add" %c, %w : (f32, f32) -> f32
  dlcb.coord.store %s, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Division by a runtime size is by constants of the host program.
// CHECK: dlcb.cuda.kernel @two_v1(%b0: !dlcb.cuda.ptr<f32>, %b1: !dlcb.cuda.ptr<f32>
// CHECK-SAME: "mul p1 1", "shift p1 1"
// CHECK: dlcb.cuda.magic_div
// CHECK-NOT: floordiv
dlcb.coord.kernel @two params [p0, p1, p2] outer [p0, p1] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 1, stage = none, index = 32>] {
  %v = dlcb.coord.access %x at <[p2, 1]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// An index from data that does not fit into 32 bits stays out of range.
// CHECK: dlcb.cuda.kernel @take_v1
// CHECK: dlcb.cuda.scalar maximum %{{.*}} : i64
// CHECK: dlcb.cuda.scalar minimum %{{.*}} : i64
// CHECK: dlcb.cuda.scalar cast
// CHECK: dlcb.cuda.load_if
dlcb.coord.kernel @take params [p0, p1] outer [p0] row [] (%x: !dlcb.coord.buffer<f32>, %n: !dlcb.coord.buffer<i64>, %o: !dlcb.coord.buffer<f32>) at (%i) schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 1, stage = none, index = 32>] {
  %a = dlcb.coord.access %n at <[1]> : !dlcb.coord.buffer<i64> -> i64
  %at = dlcb.coord.to_index %a : i64
  %size = dlcb.coord.param "p1"
  %in = dlcb.coord.index "lt" %at, %size
  %zero = dlcb.coord.constant 0.0 : f32 : f32
  %v = dlcb.coord.access %x at <[0]> plus %at if %in else %zero : f32 : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Threads of a warp combine by shuffles, warps of a block through shared memory, behind a barrier.
// CHECK: dlcb.cuda.kernel @sum_block4_v1
// CHECK: dlcb.cuda.shuffle_xor
// CHECK: dlcb.cuda.barrier
dlcb.coord.kernel @sum params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) schedules [#dlcb.coord.schedule<row = block, threads = 128, vector = 1, items = 4, stage = registers, index = 32>] {
  %v = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Large loops of what seldom runs stay rolled: rows that 32 bits do not reach, and with a length that vectors divide, rows
// at an address that is not aligned.
// CHECK: dlcb.cuda.kernel @norm_block4_v4
// CHECK-NOT: rolled
// CHECK: dlcb.cuda.kernel @norm_blocklong_v4(
// CHECK-NOT: rolled
// CHECK: dlcb.cuda.kernel @norm_blocklong_v1(
// CHECK: dlcb.cuda.for {{.*}} rolled
// CHECK: dlcb.cuda.kernel @norm_blocklong_v1_i64(
// CHECK: dlcb.cuda.for {{.*}} rolled
dlcb.coord.kernel @norm params [p0] outer [p0] row [4096] (%x: !dlcb.coord.buffer<f32>, %y: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) schedules [
    #dlcb.coord.schedule<row = block, threads = 256, vector = 4, items = 4, stage = registers, index = 32>,
    #dlcb.coord.schedule<row = block, threads = 512, vector = 4, items = 0, stage = none, index = 32>,
    #dlcb.coord.schedule<row = block, threads = 512, vector = 1, items = 0, stage = none, index = 32>,
    #dlcb.coord.schedule<row = block, threads = 512, vector = 1, items = 0, stage = none, index = 64>] {
  %v = dlcb.coord.access %x at <[4096, 1]> : !dlcb.coord.buffer<f32> -> f32
  %w = dlcb.coord.access %y at <[4096, 1]> : !dlcb.coord.buffer<f32> -> f32
  %p = dlcb.coord.scalar "mul" %v, %w : (f32, f32) -> f32
  %s = dlcb.coord.reduce "add" %p from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Threads of a column meet in shared memory, behind a barrier; how many they are the host program says.
// CHECK: dlcb.cuda.kernel @columns_column4_v1(%b0: !dlcb.cuda.ptr<f32>, %b1: !dlcb.cuda.ptr<f32>
// CHECK-SAME: "value lanes 1"
// CHECK-SAME: "value across 1"
// CHECK: dlcb.cuda.shared : !dlcb.cuda.shared<f32, 256>
// CHECK: dlcb.cuda.for {{.*}} unroll
// CHECK: dlcb.cuda.barrier
// CHECK-NOT: dlcb.cuda.shuffle_xor
dlcb.coord.kernel @columns params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) schedules [#dlcb.coord.schedule<row = column, threads = 256, vector = 1, items = 4, stage = none, index = 32>] {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A step leaves its part's results in the workspace, the last one combines them and stores.
// CHECK: dlcb.cuda.kernel @whole_blocklong_step0_v4_i64(%b0: !dlcb.cuda.ptr<f32>, %b1: !dlcb.cuda.ptr<f32>, %w0: !dlcb.cuda.ptr<f32>
// CHECK-SAME: dlcb.workspace = [f32]
// CHECK: dlcb.cuda.load_vector
// CHECK: dlcb.cuda.store %{{.*}}, %w0
// CHECK: dlcb.cuda.kernel @whole_blocklong_step1_v1_i64(
// CHECK: dlcb.cuda.load %w0
// CHECK: dlcb.cuda.store %{{.*}}, %b1
dlcb.coord.kernel @whole params [p0] outer [] row [p0] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%k) schedules [
    #dlcb.coord.schedule<row = block, threads = 256, vector = 4, items = 0, stage = none, index = 64, step = 0>,
    #dlcb.coord.schedule<row = block, threads = 256, vector = 1, items = 0, stage = none, index = 64, step = 1>] {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A scan goes tile by tile; warps meet once a tile.
// CHECK: dlcb.cuda.kernel @scan_tile4_v1
// CHECK: dlcb.cuda.for {{.*}} uniform
// CHECK-COUNT-5: dlcb.cuda.shuffle_xor
// CHECK: dlcb.cuda.barrier
// CHECK-NOT: dlcb.cuda.barrier
// CHECK: dlcb.cuda.kernel @scan_block4_v1
// CHECK-COUNT-5: dlcb.cuda.shuffle_xor
// CHECK-NOT: dlcb.cuda.barrier
// CHECK: dlcb.cuda.kernel @scan_walklong_v1
// CHECK-NOT: dlcb.cuda.shuffle_xor
dlcb.coord.kernel @scan params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) schedules [#dlcb.coord.schedule<row = tile, threads = 128, vector = 1, items = 4, stage = none, index = 32>, #dlcb.coord.schedule<row = block, threads = 32, vector = 1, items = 4, stage = none, index = 32>, #dlcb.coord.schedule<row = walk, threads = 128, vector = 1, items = 0, stage = none, index = 32>] {
  %v = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.scan "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A check is one comparison in every lane; the value goes on as it is, so the guard compares no second time.
// CHECK: dlcb.cuda.kernel @take_v1
// CHECK: %[[I:.*]] = dlcb.cuda.load %b1
// CHECK: %[[IN:.*]] = dlcb.cuda.scalar lt %{{.*}}, %p1 : i1
// CHECK-NEXT: dlcb.cuda.check 0 %[[IN]], %[[I]], %p1
// CHECK-NOT: dlcb.cuda.scalar lt
// CHECK: dlcb.cuda.load_if %[[IN]], %b0
dlcb.coord.kernel @take params [p0, p1] outer [p0] row [] (%x: !dlcb.coord.buffer<f32>, %n: !dlcb.coord.buffer<i64>, %o: !dlcb.coord.buffer<f32>) at (%i) schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 1, stage = none, index = 32>] {
  %a = dlcb.coord.access %n at <[1]> : !dlcb.coord.buffer<i64> -> i64
  %raw = dlcb.coord.to_index %a : i64
  %size = dlcb.coord.param "p1"
  %fits = dlcb.coord.index "lt" %raw, %size
  %ok = dlcb.coord.to_element %fits : i1
  %sure = dlcb.coord.check 0 %a if %ok of %size : i64
  %at = dlcb.coord.to_index %sure : i64
  %in = dlcb.coord.index "lt" %at, %size
  %zero = dlcb.coord.constant 0.0 : f32 : f32
  %v = dlcb.coord.access %x at <[0]> plus %at if %in else %zero : f32 : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[1]> : f32, !dlcb.coord.buffer<f32>
}
