// RUN: dlcb-opt %s | dlcb-opt - | filecheck %s

// A row kernel: what is row-varying, a reduction makes row-invariant.
// CHECK: dlcb.coord.kernel @softmax params [p0, p1, s] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) schedules [#dlcb.coord.schedule<row = block, threads = 256, vector = 4, items = 16, stage = registers, index = 32>, #dlcb.coord.schedule<row = warp, threads = 128, vector = 1, items = 0, stage = none, index = 64>, #dlcb.coord.schedule<row = column, threads = 256, vector = 1, items = 4, stage = none, index = 32, step = 1>, #dlcb.coord.schedule<row = block, threads = 288, vector = 8, items = 16, stage = registers, index = 32, start = shifted>] {
dlcb.coord.kernel @softmax params [p0, p1, s] outer [p0] row [p1]
    (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) schedules [
      #dlcb.coord.schedule<row = block, threads = 256, vector = 4, items = 16, stage = registers, index = 32>,
      #dlcb.coord.schedule<row = warp, threads = 128, vector = 1, items = 0, stage = none, index = 64>,
      #dlcb.coord.schedule<row = column, threads = 256, vector = 1, items = 4, stage = none, index = 32, step = 1>,
      #dlcb.coord.schedule<row = block, threads = 288, vector = 8, items = 16, stage = registers, index = 32, start = shifted>
    ] {
  // CHECK-NEXT: %v = dlcb.coord.access %x at <[s, 1]> : !dlcb.coord.buffer<f32> -> f32
  %v = dlcb.coord.access %x at <[s, 1]> : !dlcb.coord.buffer<f32> -> f32
  // CHECK-NEXT: %m = dlcb.coord.reduce "maximum" %v from 0xff800000 : f32 : f32
  %m = dlcb.coord.reduce "maximum" %v from 0xff800000 : f32 : f32
  // CHECK-NEXT: %d = dlcb.coord.scalar "sub" %v, %m : (f32, f32) -> f32
  %d = dlcb.coord.scalar "sub" %v, %m : (f32, f32) -> f32
  // CHECK-NEXT: %e = dlcb.coord.scalar "exp" %d : (f32) -> f32
  %e = dlcb.coord.scalar "exp" %d : (f32) -> f32
  // CHECK-NEXT: %t = dlcb.coord.reduce "add" %e from 0.000000e+00 : f32 : f32
  %t = dlcb.coord.reduce "add" %e from 0.0 : f32 : f32
  // CHECK-NEXT: %r = dlcb.coord.scalar "div" %e, %t : (f32, f32) -> f32
  %r = dlcb.coord.scalar "div" %e, %t : (f32, f32) -> f32
  // CHECK-NEXT: dlcb.coord.store %r, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f16>
  dlcb.coord.store %r, %o at <[p1, 1]> : f32, !dlcb.coord.buffer<f16>
}

// A pointwise kernel with a window, a guard and a coordinate that depends on data.
// CHECK: dlcb.coord.kernel @window params [n, m] outer [n, 2] row [] (%t: !dlcb.coord.buffer<f32>, %j: !dlcb.coord.buffer<i64>, %o: !dlcb.coord.buffer<f32>) at (%i, %c) attributes {dlcb.line = "model.py:3"} {
dlcb.coord.kernel @window params [n, m] outer [n, 2] row []
    (%t: !dlcb.coord.buffer<f32>, %j: !dlcb.coord.buffer<i64>, %o: !dlcb.coord.buffer<f32>) at (%i, %c)
    attributes {dlcb.line = "model.py:3"} {
  // CHECK-NEXT: %m = dlcb.coord.param "m"
  %m = dlcb.coord.param "m"
  // CHECK-NEXT: %one = dlcb.coord.constant 1 : index : index
  %one = dlcb.coord.constant 1 : index : index
  // CHECK-NEXT: %none = dlcb.coord.constant -1.000000e+00 : f32 : f32
  %none = dlcb.coord.constant -1.0 : f32 : f32
  // CHECK-NEXT: %a = dlcb.coord.access %j at <[1, 0]> : !dlcb.coord.buffer<i64> -> i64
  %a = dlcb.coord.access %j at <[1, 0]> : !dlcb.coord.buffer<i64> -> i64
  // CHECK-NEXT: %ok = dlcb.coord.constant true : i1
  %ok = dlcb.coord.constant true : i1
  // CHECK-NEXT: %sure = dlcb.coord.check 1 %a if %ok of %m : i64
  %sure = dlcb.coord.check 1 %a if %ok of %m : i64
  // CHECK-NEXT: %b = dlcb.coord.to_index %sure : i64
  %b = dlcb.coord.to_index %sure : i64
  // CHECK-NEXT: %f = dlcb.coord.to_element %m : f32
  %f = dlcb.coord.to_element %m : f32
  // CHECK-NEXT: %r = dlcb.coord.loop "maximum" <[3, 2]> from -1.000000e+00 : f32 : f32 {
  // CHECK-NEXT: ^bb{{[0-9]+}}(%k: index, %l: index):
  %r = dlcb.coord.loop "maximum" <[3, 2]> from -1.0 : f32 : f32 {
  ^bb0(%k: index, %l: index):
    // CHECK-NEXT: %s = dlcb.coord.index "add" %b, %k
    %s = dlcb.coord.index "add" %b, %k
    // CHECK-NEXT: %in = dlcb.coord.index "lt" %s, %m
    %in = dlcb.coord.index "lt" %s, %m
    // CHECK-NEXT: %at = dlcb.coord.index "select" %in, %s, %one
    %at = dlcb.coord.index "select" %in, %s, %one
    // CHECK-NEXT: %v = dlcb.coord.access %t at <[0, m]> plus %at if %in else %none : f32 : !dlcb.coord.buffer<f32> -> f32
    %v = dlcb.coord.access %t at <[0, m]> plus %at if %in else %none : f32 : !dlcb.coord.buffer<f32> -> f32
    // CHECK-NEXT: dlcb.coord.yield %v : f32
    dlcb.coord.yield %v : f32
  }
  // CHECK: %h = dlcb.coord.scalar "cast" %r : (f32) -> f16
  %h = dlcb.coord.scalar "cast" %r : (f32) -> f16
  // CHECK-NEXT: %first = dlcb.coord.index "eq" %i, %one
  %first = dlcb.coord.index "eq" %i, %one
  // CHECK-NEXT: dlcb.coord.store %r, %o at <[2, 1]> plus %one if %first : f32, !dlcb.coord.buffer<f32>
  dlcb.coord.store %r, %o at <[2, 1]> plus %one if %first : f32, !dlcb.coord.buffer<f32>
}

// Neither buffers nor coordinates.
// CHECK: dlcb.coord.kernel @nothing params [] outer [] row [] () at () {
dlcb.coord.kernel @nothing params [] outer [] row [] () at () {
}

// A scan leaves a row-varying value; so a row may be scanned, reduced, and scanned again.
// CHECK: dlcb.coord.kernel @scan params [p0, p1] outer [p0] row [p1] (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f64>) at (%i, %k) schedules [#dlcb.coord.schedule<row = tile, threads = 256, vector = 4, items = 4, stage = none, index = 32>, #dlcb.coord.schedule<row = walk, threads = 128, vector = 1, items = 0, stage = none, index = 64>] {
dlcb.coord.kernel @scan params [p0, p1] outer [p0] row [p1]
    (%x: !dlcb.coord.buffer<f32>, %o: !dlcb.coord.buffer<f64>) at (%i, %k) schedules [
      #dlcb.coord.schedule<row = tile, threads = 256, vector = 4, items = 4, stage = none, index = 32>,
      #dlcb.coord.schedule<row = walk, threads = 128, vector = 1, items = 0, stage = none, index = 64>
    ] {
  %v = dlcb.coord.access %x at <[p1, 1]> : !dlcb.coord.buffer<f32> -> f32
  %w = dlcb.coord.scalar "cast" %v : (f32) -> f64
  // CHECK: %s = dlcb.coord.scan "add" %w from 0.000000e+00 : f64 : f64
  %s = dlcb.coord.scan "add" %w from 0.0 : f64 : f64
  // CHECK-NEXT: %m = dlcb.coord.reduce "maximum" %s from 0.000000e+00 : f64 : f64
  %m = dlcb.coord.reduce "maximum" %s from 0.0 : f64 : f64
  %d = dlcb.coord.scalar "div" %s, %m : (f64, f64) -> f64
  dlcb.coord.store %d, %o at <[p1, 1]> : f64, !dlcb.coord.buffer<f64>
}

// A schedule by tiles.
// CHECK: dlcb.coord.kernel @turned params [n] outer [n, 100] row [] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k) schedules [#dlcb.coord.schedule<row = none, threads = 256, vector = 4, items = 16, stage = none, index = 64, transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>>] {
dlcb.coord.kernel @turned params [n] outer [n, 100] row [] (%x: !dlcb.coord.buffer<f16>, %o: !dlcb.coord.buffer<f16>) at (%i, %k)
    schedules [
      #dlcb.coord.schedule<row = none, threads = 256, vector = 4, items = 16, stage = none, index = 64,
                           transpose = #dlcb.coord.transpose<axis = 0, along = 64, across = 64, vector = 8>>
    ] {
  // CHECK-NEXT: %v = dlcb.coord.access %x at <[1, n]> : !dlcb.coord.buffer<f16> -> f16
  %v = dlcb.coord.access %x at <[1, n]> : !dlcb.coord.buffer<f16> -> f16
  dlcb.coord.store %v, %o at <[100, 1]> : f16, !dlcb.coord.buffer<f16>
}
