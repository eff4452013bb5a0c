#include <sotto/compress/compressor.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/check.h>

namespace sotto {

std::string_view contract_kind_name(ContractKind kind) {
  switch (kind) {
    case ContractKind::any:
      return "any";
    case ContractKind::exact:
      return "exact";
    case ContractKind::unbiased:
      return "unbiased";
    case ContractKind::unbiased_absolute:
      return "unbiased with an absolute error bound";
    case ContractKind::contraction:
      return "contraction";
  }
  return "unknown";
}

bool Contract::meets(ContractKind kind) const {
  switch (kind) {
    case ContractKind::any:
      return true;
    case ContractKind::exact:
      return alpha == 0;
    case ContractKind::unbiased:
      return unbiased && std::isfinite(alpha);
    case ContractKind::unbiased_absolute:
      return unbiased && std::isfinite(absolute_per_element);
    case ContractKind::contraction:
      return delta > 0;
  }
  return false;
}

std::string Contract::describe() const {
  if (alpha == 0) {
    return "exact";
  }
  if (unbiased && std::isfinite(alpha)) {
    return fmt::format("unbiased, α ≤ {:.2g}", alpha);
  }
  if (unbiased && std::isfinite(absolute_per_element)) {
    return fmt::format("unbiased, standard error ≤ {:.2g} per element", absolute_per_element);
  }
  if (delta > 0.99) {
    return fmt::format("contraction, δ ≥ 1 − {:.2g}", 1 - delta);
  }
  return delta > 0 ? fmt::format("contraction, δ ≥ {:.2g}", delta) : "no contract";
}

Status Compressor::decode_sum(std::span<const Term> terms, std::span<float> scratch,
                              const Visitor& visit, std::size_t& refused) const {
  std::ranges::fill(scratch, 0.0F);
  for (refused = 0; refused < terms.size(); ++refused) {
    if (Status status = decode_add(terms[refused].bytes, terms[refused].scale, scratch);
        !status.ok()) {
      return status;
    }
  }
  visit(0, scratch);
  return {};
}

std::size_t Compressor::encode_residual(std::span<float> v, const RandomKey& key,
                                        std::span<std::byte> out) {
  const auto always = [](std::size_t, std::span<float>) { return true; };
  return encode_prepared({always}, v, key, out).value_or(0);  // none where a device is lost
}

std::optional<std::size_t> Compressor::encode_prepared(const Prepare& prepare, std::span<float> v,
                                                       const RandomKey& key,
                                                       std::span<std::byte> out) {
  if (!prepare.make(0, v)) {
    return std::nullopt;
  }
  const auto encoding = out.first(encode(v, key, out));
  if (prepare.residual) {
    const Status status = decode_add(encoding, -1.0F, v);
    check(status.ok(), "an encoding of finite values decodes");
  }
  return finish_prepared(prepare, encoding);
}

std::optional<std::size_t> Compressor::finish_prepared(const Prepare& prepare,
                                                       std::span<const std::byte> encoding) const {
  return prepare.add_to.empty() || decode_add(encoding, 1, prepare.add_to).ok()
             ? std::optional(encoding.size())
             : std::nullopt;
}

}  // namespace sotto
