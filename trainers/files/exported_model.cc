#include <sotto/trainers/files/exported_model.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sotto/base/json_text.h>

namespace sotto {
namespace {

using NoteJson = nlohmann::json;

std::string means_note(const std::vector<FeatureScaling>& scalings) {
  NoteJson list = NoteJson::array();
  for (const FeatureScaling& scaling : scalings) {
    list.push_back(scaling.mean);
  }
  return json_text(list);
}

std::string deviations_note(const std::vector<FeatureScaling>& scalings) {
  NoteJson list = NoteJson::array();
  for (const FeatureScaling& scaling : scalings) {
    list.push_back(1 / scaling.factor);
  }
  return json_text(list);
}

std::string names_note(const std::vector<std::string>& names) { return json_text(NoteJson(names)); }

}  // namespace

ModelNotes notes_on(const Dataset& data) {
  std::vector<std::string> classes = data.names().classes;
  for (int number = 0; data.names().classes.empty() && number < data.classes(); ++number) {
    classes.push_back(fmt::to_string(number));
  }
  ModelNotes notes = {{"features", fmt::to_string(data.features())},
                      {"columns", names_note(data.names().columns)},
                      {"mean", means_note(data.scaling())},
                      {"deviation", deviations_note(data.scaling())},
                      {"classes", names_note(classes)}};
  if (data.regression()) {
    notes["targets"] = names_note(data.names().targets);
    notes["target_mean"] = means_note(data.target_scaling());
    notes["target_deviation"] = deviations_note(data.target_scaling());
  }
  return notes;
}

std::vector<std::byte> exported_model(const std::string& path, const ParameterLayout& layout,
                                      std::span<const float> parameters, const ModelUnits& units,
                                      const ModelNotes& notes) {
  return path.ends_with(kOnnxFile) ? encode_onnx_file(layout, parameters, units, notes)
                                   : encode_model_file(layout, parameters, notes);
}

}  // namespace sotto
