#include <sotto/kernels/ops.h>
