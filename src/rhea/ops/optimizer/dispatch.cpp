// Chooses the copy of the optimizer loops for an instruction set.
#include "rhea/ops/optimizer/kernels.h"
#include "rhea/ops/table_per_isa.h"

RHEA_TABLE_PER_ISA(OptimizerKernels, kOptimizerKernels, optimizer_kernels)
