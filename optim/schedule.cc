#include <sotto/optim/schedule.h>
