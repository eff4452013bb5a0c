#include <sotto/topology/topology.h>
