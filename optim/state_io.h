// How algorithms and step rules write their vectors into a checkpoint and take them back from bytes
// that they do not trust. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/kernels/vector.h>

namespace sotto {

/// A 64-bit count and the values.
void write_floats(std::span<const float> values, ByteBuffer& out);

/// Writes the elements of a vector, wherever it lies, as the function above does.
void write_floats(const Vector& values, ByteBuffer& out);

/// Fills `values` with what write_floats wrote. Fault::malformed when the count differs or bytes
/// are missing, Fault::non_finite for a NaN or an infinity; `what` names the vector in the message.
Status read_floats(ByteReader& in, std::string_view what, std::span<float> values);

/// Fills a vector, wherever it lies, as the function above does.
Status read_floats(ByteReader& in, std::string_view what, Vector& values);

/// Reads a string and compares it. Fault::malformed, e.g. "checkpoint of step rule 'adam' where
/// 'sgd' is used".
Status expect_name(ByteReader& in, std::string_view what, std::string_view name);

}  // namespace sotto
