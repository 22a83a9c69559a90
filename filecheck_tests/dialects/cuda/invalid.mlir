// RUN: dlcb-opt %s --verify-diagnostics --parsing-diagnostics --split-input-file | filecheck %s

// CHECK: kernel name k-1 is no name in C
dlcb.cuda.kernel @"k-1"(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  
}

// -----

// CHECK: threads is 2048, expected 1 to 1024
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 2048 {
  
}

// -----

// CHECK: a kernel has at least one parameter
dlcb.cuda.kernel @k() threads 64 {
  
}

// -----

// CHECK: parameter 0 is index, expected !dlcb.cuda.ptr or an element type
dlcb.cuda.kernel @k(%i: index) threads 64 {
  
}

// -----

// CHECK: shared arrays take 65536 bytes, the limit is 49152
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %s = dlcb.cuda.shared : !dlcb.cuda.shared<f32, 16384>
}

// -----

// CHECK: dlcb.cuda.ptr: element type index is none of f16, bf16, f32, f64, i1, ui8, i8, i16, i32, i64
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<index>) threads 64 {
  
}

// -----

// CHECK: dlcb.cuda.local: size 0 is not at least 1
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 0>
}

// -----

// CHECK: %nothing is used before its definition
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.load %x[%nothing] : f32
}

// -----

// CHECK: scalar function blend is not in the table of dialects/scalar.py
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar blend %f : f32
}

// -----

// CHECK: add takes 2 operands, 1 given
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar add %f : f32
}

// -----

// CHECK: add: operand is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar add %f, %n : f32
}

// -----

// CHECK: lt: result is f32, expected i1
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar lt %f, %f : f32
}

// -----

// CHECK: exp: operand is i32, expected a type of the domain `float`
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar exp %n : i32
}

// -----

// CHECK: select: condition is i32, expected i1
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar select %n, %f, %f : f32
}

// -----

// CHECK: neg: f16 is computed as f32; cast it first
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %a = dlcb.cuda.load %h[%n] : f16
  %v = dlcb.cuda.scalar neg %a : f16
}

// -----

// CHECK: cast: i32 to f16 goes through f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar cast %n : f16
}

// -----

// CHECK: cast: result is index, expected an element type
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.scalar cast %n : index
}

// -----

// CHECK: a constant of type index does not exist in a kernel
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.constant 1 : index
}

// -----

// CHECK: expected a number with its type
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.constant "one"
}

// -----

// CHECK: dividend is f32, expected i32 or i64
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.magic_div %f, %n, %n : f32
}

// -----

// CHECK: mul is i32, expected i64
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %d = dlcb.cuda.constant 1 : i64
  %v = dlcb.cuda.magic_div %d, %n, %n : i64
}

// -----

// CHECK: result is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.load %x[%n] : i32
}

// -----

// CHECK: index is f32, expected i32 or i64
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.load %x[%f] : f32
}

// -----

// CHECK: array is i32, expected !dlcb.cuda.ptr
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.load %n[%n] : f32
}

// -----

// CHECK: array is !dlcb.cuda.ptr<f32>, expected !dlcb.cuda.local or !dlcb.cuda.shared
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.read %x[%n] : f32
}

// -----

// CHECK: value is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  dlcb.cuda.store %n, %x[%n]
}

// -----

// CHECK: other is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  %v = dlcb.cuda.load_if %c, %x[%n], %n : f32
}

// -----

// CHECK: a vector of 3 f32 does not exist
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %a, %b, %c = dlcb.cuda.load_vector %x[%n] : f32, f32, f32
}

// -----

// CHECK: a vector of 3 f32 does not exist
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32) threads 64 {
  %a, %b, %c = dlcb.cuda.load_part %n, %n, %x[%n] : f32, f32, f32
}

// -----

// CHECK: lower is f32, expected
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32) threads 64 {
  %a, %b = dlcb.cuda.load_unaligned_part %f, %n, %x[%n] : f32, f32
}

// -----

// CHECK: upper is i64, expected i32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %m: i64, %f: f32) threads 64 {
  dlcb.cuda.store_part %f, %f, %n, %m, %x[%n]
}

// -----

// CHECK: a vector's element is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  dlcb.cuda.store_vector %n, %n, %x[%n]
}

// -----

// CHECK: initial is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.var %n : !dlcb.cuda.var<f32>
}

// -----

// CHECK: result is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.var %f : !dlcb.cuda.var<f32>
  %g = dlcb.cuda.get %v : i32
}

// -----

// CHECK: value is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.var %f : !dlcb.cuda.var<f32>
  dlcb.cuda.set %v, %n
}

// -----

// CHECK: upper is f32, expected i32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  dlcb.cuda.for %k = %n to %f step %n {
  }
}

// -----

// CHECK: a loop is unrolled or stays rolled, not both
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  dlcb.cuda.for %k = %n to %n step %n unroll rolled {
  }
}

// -----

// CHECK: mask is 32, expected 1 to 31
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 1>
  dlcb.cuda.shuffle_xor %l[%n], %l[%n], 32
}

// -----

// CHECK: target is i32, expected f32
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 1>
  %i = dlcb.cuda.local : !dlcb.cuda.local<i32, 1>
  dlcb.cuda.shuffle_xor %l[%n], %i[%n], 1
}

// -----

// CHECK: dlcb.cuda.shuffle_xor needs whole warps, but threads is 48
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 48 {
  %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 1>
  dlcb.cuda.shuffle_xor %l[%n], %l[%n], 1
}

// -----

// CHECK: dlcb.cuda.shared stands inside an if or for, not in the kernel's own body
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  dlcb.cuda.if %c {
    %s = dlcb.cuda.shared : !dlcb.cuda.shared<f32, 1>
  }
}

// -----

// CHECK: dlcb.cuda.barrier stands inside an if or for that is not uniform
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  dlcb.cuda.if %c {
    dlcb.cuda.barrier
  }
}

// -----

// CHECK: dlcb.cuda.for stands inside an if or for that is not uniform
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  dlcb.cuda.for %k = %n to %n step %n {
    dlcb.cuda.for %j = %n to %n step %n uniform {
    }
  }
}

// -----

// CHECK: dlcb.cuda.if needs %c (of dlcb.cuda.scalar), on which the block's threads may differ
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %t = dlcb.cuda.thread_idx : i32
  %c = dlcb.cuda.scalar lt %t, %n : i1
  dlcb.cuda.if %c uniform {
  }
}

// -----

// CHECK: dlcb.cuda.if needs %c (of dlcb.cuda.scalar), on which the block's threads may differ
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.load %x[%n] : f32
  %c = dlcb.cuda.scalar lt %v, %f : i1
  dlcb.cuda.if %c uniform {
  }
}

// -----

// CHECK: dlcb.cuda.shuffle_xor needs %t (of dlcb.cuda.thread_idx), on which the block's threads may differ
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %l = dlcb.cuda.local : !dlcb.cuda.local<f32, 1>
  %t = dlcb.cuda.thread_idx : i32
  dlcb.cuda.shuffle_xor %l[%t], %l[%n], 1
}

// -----

// CHECK: dlcb.cuda.store uses %v (of dlcb.cuda.load) of an earlier phase; keep it in a local or compute it again
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.load %x[%n] : f32
  dlcb.cuda.barrier
  dlcb.cuda.store %v, %x[%n]
}

// -----

// CHECK: dlcb.cuda.store uses %v (of dlcb.cuda.load) of an earlier phase; keep it in a local or compute it again
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  %v = dlcb.cuda.load %x[%n] : f32
  dlcb.cuda.if %c uniform {
    dlcb.cuda.store %v, %x[%n]
  }
}

// -----

// CHECK: dlcb.cuda.get uses %v (of dlcb.cuda.var) of an earlier phase; keep it in a local or compute it again
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %v = dlcb.cuda.var %f : !dlcb.cuda.var<f32>
  dlcb.cuda.barrier
  %g = dlcb.cuda.get %v : f32
}

// -----

// CHECK: test.op does not belong in a kernel
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  "test.op"() : () -> ()
}

// -----

// CHECK: number is -2, expected 0 or more
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  dlcb.cuda.check -2 %c, %n, %n
}

// -----

// CHECK: value is f32, expected an integer
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  dlcb.cuda.check 0 %c, %f, %n
}

// -----

// CHECK: size is f32, expected i32 or i64
dlcb.cuda.kernel @k(%x: !dlcb.cuda.ptr<f32>, %n: i32, %f: f32, %h: !dlcb.cuda.ptr<f16>) threads 64 {
  %c = dlcb.cuda.constant true
  dlcb.cuda.check 0 %c, %n, %f
}
