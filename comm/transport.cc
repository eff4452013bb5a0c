#include <sotto/comm/transport.h>
