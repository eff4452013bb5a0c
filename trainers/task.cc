#include <sotto/trainers/task.h>
