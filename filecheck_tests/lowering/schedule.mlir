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

// What is read along another axis goes by tiles: vectors both ways, either way, none; then what short axes need.
// CHECK: dlcb.coord.kernel @turned
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 8, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>>
// CHECK-SAME: vector = 8, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 1>>
// CHECK-SAME: vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>>
// CHECK-SAME: vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 1>>
// CHECK-SAME: vector = 1, items = 4, stage = none, index = 64, transpose = #dlcb.coord.transpose<axis = 0, along = 32, across = 32, vector = 1>>
// CHECK-SAME: #dlcb.coord.schedule<row = none, threads = 256, vector = 1, items = 8, stage = none, index = 32>
dlcb.coord.kernel @turned params [p0, p1] outer [p0, p1] row [] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f16> -> f16
  dlcb.coord.store %v, %o at <[p1, 1]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// Known sizes: longer and narrower tiles, vectors as they divide sizes, nothing for short axes. A result that lies along
// another axis is the same thing.
// CHECK: dlcb.coord.kernel @heads
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 4, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 1, along = 32, across = 128, vector = 2>>
// CHECK-SAME: vector = 1, items = 16, stage = none, index = 32, transpose = #dlcb.coord.transpose<axis = 1, along = 32, across = 128, vector = 1>>]
dlcb.coord.kernel @heads params [] outer [4, 30, 500] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%h, %i, %k) {
  %v = dlcb.coord.access %x at <[15000, 500, 1]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[15000, 500, 1]> : f32, !dlcb.coord.buffer<f32>
  dlcb.coord.store %v, %x at <[15000, 1, 30]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Three operands of four bytes share a block's memory: a smaller tile.
// CHECK: dlcb.coord.kernel @three
// CHECK-SAME: along = 32, across = 64
dlcb.coord.kernel @three params [p0, p1] outer [p0, p1] row [] (%x: !dlcb.coord.buffer<f32>, %y: !dlcb.coord.buffer<f32>, %z: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %a = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  %b = dlcb.coord.access %y at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  %c = dlcb.coord.access %z at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  %d = dlcb.coord.scalar "add" %a, %b : (f32, f32) -> f32
  %e = dlcb.coord.scalar "add" %c, %d : (f32, f32) -> f32
  dlcb.coord.store %e, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Not where an axis is short, nor where little is to be done, nor where what is read along the other axis stays the same.
// CHECK: dlcb.coord.kernel @pixels
// CHECK-NOT: transpose
dlcb.coord.kernel @pixels params [p0] outer [p0, 3] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[3, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// CHECK: dlcb.coord.kernel @little
// CHECK-NOT: transpose
dlcb.coord.kernel @little params [] outer [100, 100] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, 100]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[100, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// CHECK: dlcb.coord.kernel @bias
// CHECK-NOT: transpose
dlcb.coord.kernel @bias params [p0, p1] outer [p0, p1] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, 0]> : !dlcb.coord.buffer<f32> -> f32
  dlcb.coord.store %v, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
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

// -----

// Rows of an odd length: a warp or a block whose vectors start where memory is aligned; single elements for other
// addresses. A warp more than 256 threads, for there are 513 vectors at most.
// CHECK: dlcb.coord.kernel @odd
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = block, threads = 288, vector = 8, items = 16, stage = registers, index = 32, start = shifted>
// CHECK-SAME: #dlcb.coord.schedule<row = block, threads = 512, vector = 1, items = 0, stage = none, index = 32>]
dlcb.coord.kernel @odd params [] outer [1000] row [4095] (%x: !dlcb.coord.buffer<f16>, %w: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[4095, 1]> : !dlcb.coord.buffer<f16> -> f16
  %s = dlcb.coord.reduce "maximum" %v from 0.0 : f16 : f16
  %w0 = dlcb.coord.access %w at <[0, 1]> : !dlcb.coord.buffer<f16> -> f16
  dlcb.coord.store %s, %o at <[4095, 1]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// The same without a reduction: lines of the innermost axis; and where parts lie side by side, before whole vectors.
// CHECK: dlcb.coord.kernel @lines
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = block, threads = 288, vector = 8, items = 16, stage = registers, index = 32, start = shifted>
// CHECK-SAME: #dlcb.coord.schedule<row = none, threads = 256, vector = 1
dlcb.coord.kernel @lines params [] outer [1000, 4095] row [] (%x: !dlcb.coord.buffer<f16>, %w: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[4095, 1]> : !dlcb.coord.buffer<f16> -> f16
  %w0 = dlcb.coord.access %w at <[0, 1]> : !dlcb.coord.buffer<f16> -> f16
  %s = dlcb.coord.scalar "maximum" %v, %w0 : (f16, f16) -> f16
  dlcb.coord.store %s, %o at <[4095, 1]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// Lines that are whole vectors go by the flat kernel, whatever they are put together of; others before single elements.
// CHECK: dlcb.coord.kernel @parts params [n]
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 8
// CHECK-SAME: #dlcb.coord.schedule<row = block, threads = 288, vector = 8, items = 16, stage = registers, index = 32, start = shifted>
// CHECK-SAME: #dlcb.coord.schedule<row = none, threads = 256, vector = 1
dlcb.coord.kernel @parts params [n] outer [1000, n] row [] (%x: !dlcb.coord.buffer<f16>, %y: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) {
  %h = dlcb.coord.constant 33 : index : index
  %g = dlcb.coord.index "lt" %k, %h
  %zero = dlcb.coord.constant 0.0 : f16 : f16
  %a = dlcb.coord.access %x at <[33, 1]> if %g else %zero : f16 : !dlcb.coord.buffer<f16> -> f16
  %m = dlcb.coord.index "le" %h, %k
  %b = dlcb.coord.access %y at <[100, 1]> if %m else %zero : f16 : !dlcb.coord.buffer<f16> -> f16
  %s = dlcb.coord.scalar "maximum" %a, %b : (f16, f16) -> f16
  dlcb.coord.store %s, %o at <[n, 1]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// Rows that are loaded alike but stored otherwise start nowhere together.
// CHECK: dlcb.coord.kernel @stored_otherwise
// CHECK-NOT: shifted
dlcb.coord.kernel @stored_otherwise params [] outer [1000] row [4095] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[4095, 1]> : !dlcb.coord.buffer<f16> -> f16
  %s = dlcb.coord.reduce "maximum" %v from 0.0 : f16 : f16
  dlcb.coord.store %s, %o at <[1, 1000]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// Columns: a thread each for short ones, several for longer ones; steps over parts of long ones.
// CHECK: dlcb.coord.kernel @columns
// CHECK-SAME: schedules [#dlcb.coord.schedule<row = thread, threads = 128, vector = 1, items = 0, stage = none, index = 32>
// CHECK-SAME: row = column, threads = 256, vector = 1, items = 4, stage = none, index = 32>
// CHECK-SAME: row = column, threads = 256, vector = 1, items = 4, stage = none, index = 64>
// CHECK-SAME: row = column, threads = 256, vector = 1, items = 4, stage = none, index = 32, step = 0>
// CHECK-SAME: row = column, threads = 256, vector = 1, items = 4, stage = none, index = 64, step = 0>
// CHECK-SAME: row = column, threads = 256, vector = 1, items = 4, stage = none, index = 64, step = 1>]
dlcb.coord.kernel @columns params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A whole row that needs the total is stored by a last step over its parts, with as many variants as the others.
// CHECK: dlcb.coord.kernel @normalized
// CHECK-SAME: items = 4, stage = none, index = 32, step = 0>
// CHECK-SAME: items = 4, stage = none, index = 64, step = 0>
// CHECK-SAME: items = 4, stage = none, index = 32, step = 1>
// CHECK-SAME: items = 4, stage = none, index = 64, step = 1>]
dlcb.coord.kernel @normalized params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  %d = dlcb.coord.scalar "div" %v, %s : (f32, f32) -> f32
  dlcb.coord.store %d, %o at <[1, p0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A whole row that needs no total is stored part by part in the first step; narrow items are loaded eight at once.
// CHECK: dlcb.coord.kernel @beside
// CHECK-SAME: items = 4, stage = none, index = 64>
// CHECK-SAME: items = 8, stage = none, index = 32, step = 0>
// CHECK-SAME: items = 8, stage = none, index = 64, step = 0>
// CHECK-SAME: items = 8, stage = none, index = 64, step = 1>]
dlcb.coord.kernel @beside params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>, %m: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1, p0]> : !dlcb.coord.buffer<f16> -> f16
  %w = dlcb.coord.scalar "cast" %v : (f16) -> f32
  %s = dlcb.coord.reduce "add" %w from 0.0 : f32 : f32
  dlcb.coord.store %v, %o at <[1, p0]> : f16, !dlcb.coord.buffer<f16>
  dlcb.coord.store %s, %m at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// A whole row is stored, but rows are not few where they are long: attention of a sequence to itself.
// CHECK: dlcb.coord.kernel @attention
// CHECK-NOT: step =
dlcb.shape.system @main {
  %s = dlcb.shape.symbol "s" size "x" 1
  %0 = dlcb.shape.constant 12
  %1 = dlcb.shape.mul %0, %s
  %d0 = dlcb.shape.define "d0" = %1
}
dlcb.graph.func @main(%x: tensor<[12, s, s], f32> input "x") {
  %r = dlcb.graph.launch(%x) {forms = [{kernel = @attention, when = #builtin.int<1>, bindings = {p0 = "d0", p1 = "s"}}]} : (!dlcb.graph.tensor<[12, s, s], f32>) -> !dlcb.graph.tensor<[12, s, s], f32, dense<[0, 1, 2]>>
  dlcb.graph.return %r : !dlcb.graph.tensor<[12, s, s], f32, dense<[0, 1, 2]>>
}
dlcb.coord.kernel @attention params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  %d = dlcb.coord.scalar "div" %v, %s : (f32, f32) -> f32
  dlcb.coord.store %d, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// More rows than blocks the device has at once: they are not cut; nor are short ones.
// CHECK: dlcb.coord.kernel @many
// CHECK-NOT: step =
dlcb.coord.kernel @many params [p0] outer [512] row [p0] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[p0, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// CHECK: dlcb.coord.kernel @short
// CHECK-NOT: step =
dlcb.coord.kernel @short params [p0] outer [p0] row [1000] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[1000, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.reduce "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[1, 0]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// Rows that are scanned: a warp for short ones, tile by tile else.
// CHECK: dlcb.coord.kernel @scan
// CHECK-SAME: row = block, threads = 32, vector = 1, items = 4
// CHECK-SAME: row = tile, threads = 256, vector = 4, items = 4
// CHECK-SAME: row = tile, threads = 256, vector = 1, items = 4, stage = none, index = 64
dlcb.coord.kernel @scan params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>) at (%i, %k) {
  %v = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %s = dlcb.coord.scan "add" %v from 0.0 : f32 : f32
  dlcb.coord.store %s, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f32>
}

// -----

// What only halves see need not be exact; a division by a number of the row is a product. A store in single precision,
// or a comparison, sees all bits.
// CHECK: dlcb.coord.kernel @halves
// CHECK: dlcb.coord.scalar "fast_exp"
// CHECK: %[[TOTAL:.*]] = dlcb.coord.reduce "add"
// CHECK: %[[INVERSE:.*]] = dlcb.coord.scalar "fast_div" %{{.*}}, %[[TOTAL]]
// CHECK: dlcb.coord.scalar "mul" %{{.*}}, %[[INVERSE]]
dlcb.coord.kernel @halves params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) {
  %h = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f16> -> f16
  %v = dlcb.coord.scalar "cast" %h : (f16) -> f32
  %e = dlcb.coord.scalar "exp" %v : (f32) -> f32
  %s = dlcb.coord.reduce "add" %e from 0.0 : f32 : f32
  %d = dlcb.coord.scalar "div" %e, %s : (f32, f32) -> f32
  %r = dlcb.coord.scalar "cast" %d : (f32) -> f16
  dlcb.coord.store %r, %o at <[p1, 1]> : f16, !dlcb.coord.buffer<f16>
}

// -----

// CHECK: dlcb.coord.kernel @singles
// CHECK: dlcb.coord.scalar "exp"
// CHECK: dlcb.coord.scalar "exp"
// CHECK: dlcb.coord.scalar "fast_exp"
dlcb.coord.kernel @singles params [p0] outer [p0] row [] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f32>, %q: !dlcb.coord.buffer<f16>) at (%i) {
  %v = dlcb.coord.access %x at <[1]> : !dlcb.coord.buffer<f32> -> f32
  %stored = dlcb.coord.scalar "exp" %v : (f32) -> f32
  dlcb.coord.store %stored, %o at <[1]> : f32, !dlcb.coord.buffer<f32>
  %w = dlcb.coord.scalar "neg" %v : (f32) -> f32
  %compared = dlcb.coord.scalar "exp" %w : (f32) -> f32
  %less = dlcb.coord.scalar "lt" %v, %compared : (f32, f32) -> i1
  %rounded = dlcb.coord.scalar "exp" %w : (f32) -> f32
  %chosen = dlcb.coord.scalar "select" %less, %rounded, %v : (i1, f32, f32) -> f32
  %half = dlcb.coord.scalar "cast" %chosen : (f32) -> f16
  dlcb.coord.store %half, %q at <[1]> : f16, !dlcb.coord.buffer<f16>
}
