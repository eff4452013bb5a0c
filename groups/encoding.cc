#include <sotto/groups/encoding.h>

#include <array>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/none.h>
#include <sotto/compress/registry.h>

namespace sotto {
namespace {

/// A rule of the table in the header.
struct Rule {
  Carried data;
  std::string_view name;
  bool unbiased;         ///< without memory
  bool contraction;      ///< with feedback
  bool keyed;            ///< a contraction with a memory under keys
  double least_bits;     ///< an element, of an unbiased encoding
  double enough_bits;    ///< an element, that need not be unbiased; 0: there are none
  std::string_view why;  ///< it is so
  std::string_view advice;
};

constexpr std::array kRules = {
    Rule{Carried::gradient, "gradient", true, true, false, 0, 0,
         "what a sum loses every round must be made up for",
         "take an unbiased compressor (quant:8) without memory, or a contraction (sign) with "
         "feedback"},
    Rule{Carried::update, "update", false, true, false, 0, 0,
         "holders add up what they are sent, and with it its errors",
         "take a contraction (quant:8, sign) with feedback, or none"},
    Rule{Carried::parameters, "parameters", false, false, false, 0, 0,
         "an error in parameters stays, and feedback would count them twice",
         "take none, or send the parameters' updates"},
    Rule{Carried::activation, "activation", true, false, true, 8, 16,
         "rows of different examples have no common error that feedback could make up for",
         "take none, fp16 or quant:8, without memory, or where rows recur under keys a contraction "
         "(quant:4) in a KeyedLink, or in a Halo that replaces rows"},
    Rule{Carried::activation_gradient, "activation_gradient", true, false, false, 8, 0,
         "rows of different examples have no common error that feedback could make up for",
         "take none or quant:8, without memory"},
    Rule{Carried::exact, "exact", false, false, false, 0, 0,
         "counts, choices and ids are wrong if one bit of them is", "take none"},
};

const Rule& rule_of(Carried data) {
  for (const Rule& rule : kRules) {
    if (rule.data == data) {
      return rule;
    }
  }
  broken_invariant("every kind of data has a rule", __FILE__, __LINE__);
}

/// Bits of an element in a vector that is long enough to forget what stands in front.
double bits_an_element(const Compressor& compressor) {
  constexpr std::size_t kLong = std::size_t{1} << 16U;
  return 8.0 * static_cast<double>(compressor.max_bytes(kLong)) / static_cast<double>(kLong);
}

/// Whether an encoding keeps any vector within half its length, as 8 bits do and sparse ones do
/// not.
bool close(const Contract& contract) { return contract.alpha <= 0.5; }

bool allows(const Rule& rule, ErrorMemory memory, const Compressor& compressor,
            std::size_t elements) {
  const Contract contract = compressor.contract(elements);
  if (memory == ErrorMemory::feedback) {
    return rule.contraction && contract.meets(ContractKind::contraction);
  }
  if (memory == ErrorMemory::keyed) {
    return rule.keyed && contract.meets(ContractKind::contraction);
  }
  const double bits = bits_an_element(compressor);
  // Many bits are enough where each element has them: sparse encodings have as many, for few.
  const bool many = rule.enough_bits > 0 && bits >= rule.enough_bits && close(contract);
  const bool noisy = rule.least_bits > 0 && !close(contract);
  return many || (rule.unbiased && !noisy && bits >= rule.least_bits &&
                  contract.meets(ContractKind::unbiased));
}

}  // namespace

std::string_view carried_name(Carried data) { return rule_of(data).name; }

std::string_view memory_name(ErrorMemory memory) {
  switch (memory) {
    case ErrorMemory::feedback:
      return "feedback";
    case ErrorMemory::keyed:
      return "keyed";
    default:
      return "none";
  }
}

void refuse_keyed(const Encoding& encoding) {
  if (encoding.memory == ErrorMemory::keyed) {
    refuse("compressor", encoding.compressor,
           "this collective has no memory under keys; take the memory none, a "
           "KeyedLink, or a Halo that replaces rows");
  }
}

bool is_exact(const Compressor& compressor) {
  return compressor.undecorated().wire_id() == kNoneWireId;
}

std::unique_ptr<Compressor> make_encoder(const Encoding& encoding, std::size_t elements,
                                         const Ops& ops) {
  const bool feedback = encoding.memory == ErrorMemory::feedback;
  const bool unbiased = encoding.memory == ErrorMemory::none;
  auto compressor = make_compressor(
      encoding.compressor, unbiased ? ContractKind::unbiased : ContractKind::contraction, ops);
  const Rule& rule = rule_of(encoding.data);
  if (is_exact(*compressor) && !feedback) {
    return compressor;
  }
  if (!compressor->divisible()) {
    refuse("compressor", encoding.compressor,
           "it goes by the tensors of a whole model, and a collective cuts vectors anywhere; take "
           "one for any vector, as quant:8");
  }
  if (!allows(rule, encoding.memory, *compressor, elements)) {
    refuse("compressor", encoding.compressor,
           fmt::format("its contract ({}, {:.3g} bits an element) with memory {} does not fit {} "
                       "data: {}; {}",
                       compressor->contract(elements).describe(), bits_an_element(*compressor),
                       memory_name(encoding.memory), rule.name, rule.why, rule.advice));
  }
  return compressor;
}

}  // namespace sotto
