#include <sotto/compress/compressor.h>
