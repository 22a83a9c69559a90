// RUN: not dlcb-opt %s -p dlcb-fuze 2>&1 | filecheck %s --check-prefix PASS
// RUN: not dlcb-opt %s -p canonicalize{ 2>&1 | filecheck %s --check-prefix SYNTAX
// RUN: not dlcb-opt %s -p 'canonicalize{level=3}' 2>&1 | filecheck %s --check-prefix OPTION
// RUN: not dlcb-opt %s --stop-after fusion 2>&1 | filecheck %s --check-prefix STAGE
// RUN: not dlcb-opt %s --print-ir-after fusion 2>&1 | filecheck %s --check-prefix PRINT
// RUN: not dlcb-opt %s --frobnicate 2>&1 | filecheck %s --check-prefix FLAG
// RUN: not dlcb-opt %s --pipeline fast 2>&1 | filecheck %s --check-prefix PIPELINE
// RUN: not dlcb-opt %s -t ptx 2>&1 | filecheck %s --check-prefix TARGET

builtin.module {}

// PASS: dlcb-opt: error: unknown pass 'dlcb-fuze'; did you mean 'dlcb-fuse'?
// SYNTAX: dlcb-opt: error: -p: Error parsing pass pipeline specification
// OPTION: dlcb-opt: error: -p canonicalize{level=3}: Provided arguments ["level"] not found
// STAGE: dlcb-opt: error: unknown stage 'fusion'; the stages are generalize, collect, solve, simplify, strides, fuse, coordinates, schedule, cuda, host
// PRINT: dlcb-opt: error: unknown stage or pass 'fusion'
// FLAG: dlcb-opt: error: unrecognized arguments: --frobnicate
// PIPELINE: dlcb-opt: error: argument --pipeline: invalid choice: 'fast' (choose from 'default')
// TARGET: dlcb-opt: error: argument -t/--target: invalid choice: 'ptx'
