// The stages of a product over a grid (programs/grid_product.h), each of which multiplies, and then
// carries a matrix or a sum.
//
// One thread at a time. The stages point to the object, which owns their collectives.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/groups/internal/product_axes.h>
#include <sotto/groups/program.h>
#include <sotto/kernels/matrix_product.h>

namespace sotto::internal {

/// Floating-point operations of a product.
double flops_of(const ProductShape& shape);

class ProductStages {
 public:
  using Stages = std::vector<ProgramStage>;

  ProductStages(LocalNode& node, const GridProductOptions& options);
  ProductStages(const ProductStages&) = delete;
  ProductStages& operator=(const ProductStages&) = delete;

  /// A stage that only computes.
  void list_compute(std::string_view what, double flops, std::function<Status()> compute,
                    Stages& stages) const;
  /// A stage that fails where `values` are not finite.
  void list_check(std::string_view what, std::span<const float> values, std::string_view name,
                  Stages& stages) const;
  /// Broadcast number l: the member there has the panel in `own`, all have it in `panel`.
  void list_panel(const ProductWay& way, int l, std::span<const float> own, std::span<float> panel,
                  Stages& stages);
  /// Sum number l: `compute` writes a summand of as many elements as `room`, and the member there
  /// has the sum in `sum`.
  void list_sum(const ProductWay& way, int l, double flops, std::span<float> sum,
                std::span<float> room, const std::function<void(std::span<float>)>& compute,
                Stages& stages);
  /// All members have in `block` what each has a part of, in whole rows.
  void list_gather(const ProductWay& way, std::span<const float> own, std::span<float> block,
                   std::size_t row, Stages& stages);
  /// `compute` writes a summand to `block`; each member has its part of the sum in `own`.
  void list_scatter(const ProductWay& way, double flops, std::function<void()> compute,
                    std::span<float> block, std::span<float> own, std::size_t row, Stages& stages);
  /// All members have the sum of their `vector`s there.
  void list_all_reduce(std::string_view what, const ProductWay& way, std::span<float> vector,
                       Stages& stages);

  /// What the stages listed so far carry in a round.
  ExchangeVolume volume() const;

 private:
  /// A stage whose computation begins `collective`.
  void list_collective(std::string_view what, double flops, std::function<void()> compute,
                       std::unique_ptr<VectorCollective> collective, std::span<float> vector,
                       Stages& stages);

  LocalNode& node_;
  std::string title_;  // of the product, in the names of stages
  bool exchanges_only_;
  std::optional<CollectiveForm> broadcast_;
  std::vector<std::unique_ptr<VectorCollective>> collectives_;
};

}  // namespace sotto::internal
