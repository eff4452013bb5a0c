// The records of TensorBoard's event files: a TFRecord frame around a protocol buffer.
//
// Frame (tensorflow.org/tutorials/load_data/tfrecord): length as 8 bytes, its masked CRC32C, the
// data, their masked CRC32C; all little-endian. Of the message Event (tensorflow/core/util/
// event.proto) five fields are written: a general library for protocol buffers would bring a
// compiler for a schema of a dozen lines. CRC32C is ISA-L's.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sotto {

/// Whether this build has a CRC32C (libisal-dev); without one the functions below abort.
bool has_event_records();

/// CRC32C (Castagnoli), reflected, as iSCSI has it: 0xE3069283 for "123456789".
std::uint32_t crc32c(std::string_view bytes);
/// TFRecord's masked checksum: a CRC over data that hold CRCs would not be one.
std::uint32_t masked_crc32c(std::string_view bytes);

/// A scalar's name and value.
struct EventScalar {
  std::string tag;
  float value = 0;
};

/// The first record of a file.
std::string version_record(double wall_time);
/// One of values at a step; `wall_time` is in seconds since 1970.
std::string scalars_record(double wall_time, std::int64_t step,
                           std::span<const EventScalar> scalars);

}  // namespace sotto
