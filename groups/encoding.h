// Which data may be encoded how: the rules between what a collective carries, the contract of its
// compressor, and the memory that makes up for what the compressor loses.
//
// | data                | taken as it is | by other compressors, with this memory                 |
// | ------------------- | -------------- | ------------------------------------------------------ |
// | gradient            | always         | unbiased without memory; a contraction with feedback   |
// | update              | always         | a contraction with feedback                            |
// | parameters          | always         | none                                                   |
// | activation          | always         | unbiased, 8 bits an element or more; or 16 bits; or a  |
// |                     |                | contraction with a memory under keys                   |
// | activation_gradient | always         | unbiased, 8 bits an element or more                    |
// | exact               | always         | none                                                   |
//
// Error feedback sends later what it could not send now. That is right for a vector of which a
// receiver takes the sum over rounds. It is wrong for activations: the residual of one example
// would be added to another. What makes up for it there is a memory under the example's key, at
// both ends (keyed_link.h, halo.h). Parameters would be counted twice; gather updates of them.
//
// Every row of activations and of their gradients counts, so their compressors also keep any row
// within half its length (Contract::alpha), which sparse encodings do not.
//
// Plain values and pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>

namespace sotto {

/// What a collective carries.
enum class Carried : std::uint8_t {
  gradient,             ///< summands of a sum that is taken every round
  update,               ///< changes of parameters, which every holder adds to its copy
  parameters,           ///< parameters themselves
  activation,           ///< rows that depend on examples: tokens, nodes of a graph
  activation_gradient,  ///< gradients at such rows
  exact,                ///< counts, choices, ids, lengths: wrong in one bit is wrong
};

/// What a sender keeps of an encoding's error.
enum class ErrorMemory : std::uint8_t {
  none,      ///< the sender forgets the error
  feedback,  ///< the sender keeps the residual v − C(v), and adds it to its next v
  keyed,     ///< both ends keep under a key what they hold of its row, m, and send C(v − m)
};

/// How a collective encodes.
struct Encoding {
  Carried data = Carried::gradient;
  ErrorMemory memory = ErrorMemory::none;
  std::string compressor = "none";  ///< specification (compress/registry.h)
};

/// The name in messages: "activation_gradient".
std::string_view carried_name(Carried data);
/// The name in messages: "feedback".
std::string_view memory_name(ErrorMemory memory);

/// Builds the compressor of `encoding`, in the form that the memory needs, for vectors of
/// `elements` elements. Throws Error (field "compressor") for a specification that is refused, and
/// where the rules above do not allow the pairing; the message says what would do.
std::unique_ptr<Compressor> make_encoder(const Encoding& encoding, std::size_t elements,
                                         const Ops& ops = host_ops());

/// Throws Error (field "compressor") for the memory under keys, for collectives that have none.
void refuse_keyed(const Encoding& encoding);

/// Whether the compressor carries its elements as they are.
bool is_exact(const Compressor& compressor);

}  // namespace sotto
