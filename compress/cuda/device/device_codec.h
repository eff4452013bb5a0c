// Compressors of device vectors with encodings of a length that is known beforehand: made whole on
// the device (codec.h), and copied.
#pragma once

#include <memory>

#include "device_compressor.h"

namespace sotto::cuda {

/// Throws Error for a family that there is no codec of.
std::unique_ptr<Compressor> make_device_codec(std::unique_ptr<Compressor> host,
                                              const DeviceOps& ops, Queue& queue);

}  // namespace sotto::cuda
