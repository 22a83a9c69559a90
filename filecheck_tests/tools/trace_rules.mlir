// RUN: dlcb-opt %s -p dlcb-shape-solve --trace-rules 2>&1 >/dev/null | filecheck %s
// RUN: dlcb-opt %s -p dlcb-shape-solve 2>&1 >/dev/null | filecheck %s --check-prefix SILENT --allow-empty

// CHECK: shape Inversion: 2*h + 2 == 10 -> h == 4 // linear: model.py:12
// CHECK-NEXT: shape Substitution: h == 4 -> h is 4 // linear: model.py:12
// CHECK-NEXT: shape Folding: divides(4, 8) -> proved // view: model.py:13
// CHECK-NEXT: shape LearnBound: 3 <= w -> w is at least 3 // conv2d: model.py:14
// SILENT-NOT: shape
dlcb.shape.system @f {
  %h = dlcb.shape.symbol "h" size "x" 0
  %w = dlcb.shape.symbol "w" size "x" 1
  %two = dlcb.shape.constant 2
  %three = dlcb.shape.constant 3
  %ten = dlcb.shape.constant 10
  %double = dlcb.shape.mul %two, %h
  %more = dlcb.shape.add %double, %two
  %d0 = dlcb.shape.define "d0" = %more
  dlcb.shape.require eq %d0, %ten "linear: model.py:12"
  dlcb.shape.require divides %h, %double "view: model.py:13"
  dlcb.shape.require le %three, %w "conv2d: model.py:14"
}
