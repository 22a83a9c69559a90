// RUN: dlcb-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: dlcb.host.size: no argument 'y'; the program's arguments are: x
dlcb.host.program @p(input "x" f32 rank 2) {
  %n = dlcb.host.size "y" 0
  dlcb.host.return (%n : index)
}

// -----

// CHECK: dlcb.host.size: 'w' is of kind weight, expected input
dlcb.host.program @p(weight "w" f32 [4] strides [1]) {
  %n = dlcb.host.size "w" 0
  dlcb.host.return (%n : index)
}

// -----

// CHECK: dlcb.host.stride: 'x' has rank 2, no dimension 2
dlcb.host.program @p(input "x" f32 rank 2) {
  %n = dlcb.host.stride "x" 2
  dlcb.host.return (%n : index)
}

// -----

// CHECK: dlcb.host.aligned: bytes must be 1, 2, 4, 8 or 16, got 3
dlcb.host.program @p(input "x" f32 rank 2) {
  %n = dlcb.host.aligned "x" 3
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.constant: a truth value is 0 or 1, got 2
dlcb.host.program @p() {
  %n = "dlcb.host.constant"() <{value = #builtin.int<2>}> : () -> i1
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.scaled: denominator must be positive, got 0
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %m = dlcb.host.scaled %n, 1, 0
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.magic_mul: bits must be 32 or 64, got 16
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %m = dlcb.host.magic_mul %n, 16
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.check: the text uses {1}, but there are 1 operands
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %yes = dlcb.host.constant true
  dlcb.host.check %yes, "{0} {1}" (%n)
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.output: 2 sizes but 1 strides
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %o = dlcb.host.output [%n, %n] strides [%n] : f32
  dlcb.host.return (%o)
}

// -----

// CHECK: expected an element type, one of f16, bf16, f32, f64, i1, ui8, i8, i16, i32, i64; got f8
dlcb.host.program @p() {
  %o = dlcb.host.output [] strides [] : f8
  dlcb.host.return (%o)
}

// -----

// CHECK: dlcb.host.launch: a launch has at least one variant
dlcb.host.program @p() {
  dlcb.host.launch () []
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.launch: threads must be between 1 and 1024, got 2048
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %yes = dlcb.host.constant true
  dlcb.host.launch () [@k threads 2048 if %yes blocks %n ()]
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.launch: an integer is passed as i32 or i64, got f32
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %yes = dlcb.host.constant true
  dlcb.host.launch () [@k threads 32 if %yes blocks %n (%n : f32)]
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.library "copy": a result has a dtype, and only a result
dlcb.host.program @p(input "x" f32 rank 1) {
  %x = dlcb.host.argument "x"
  %y = dlcb.host.library "copy" (%x)
  dlcb.host.return (%y)
}

// -----

// CHECK: dlcb.host.return: a result must not lie in the arena
dlcb.host.program @p() {
  %n = dlcb.host.constant 256
  %m = dlcb.host.arena %n
  %b = dlcb.host.buffer %m, %n [] strides [] : f32
  %v = dlcb.host.view %b, %n [] strides []
  dlcb.host.return (%v)
}

// -----

// CHECK: dlcb.host.program: at most one arena, got 2
dlcb.host.program @p() {
  %n = dlcb.host.constant 256
  %a = dlcb.host.arena %n
  %b = dlcb.host.arena %n
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.program: two arguments are called 'x'
dlcb.host.program @p(input "x" f32 rank 1, int "x") {
  dlcb.host.return ()
}

// -----

// CHECK: expected input, weight or int; got output
dlcb.host.program @p(output "x" f32 rank 1) {
  dlcb.host.return ()
}

// -----

// CHECK: weight w: 2 sizes but 1 strides
dlcb.host.program @p(weight "w" f32 [4, 4] strides [1]) {
  dlcb.host.return ()
}

// -----

// CHECK: dlcb.host.program: 2 result names but 1 results
dlcb.host.program @p(input "x" f32 rank 1) -> ("a", "b") {
  %x = dlcb.host.argument "x"
  dlcb.host.return (%x)
}

// -----

// CHECK: dlcb.host.launch: a failure is one of IndexError, RuntimeError, got SystemExit
dlcb.host.program @p() {
  %n = dlcb.host.constant 1
  %yes = dlcb.host.constant true
  dlcb.host.launch () [@k threads 32 if %yes blocks %n ()] failures [["SystemExit", "index {0}"]]
  dlcb.host.return ()
}
