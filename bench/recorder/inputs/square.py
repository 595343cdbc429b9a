# SPDX-License-Identifier: Apache-2.0
"""Families whose processor resizes every image to the tower's square.

transformers 5.17: processing_llava.py, processing_paligemma.py, processing_gemma3.py (pan and scan off, as released),
processing_gemma3n.py, processing_blip_2.py, processing_instructblip.py, processing_video_llava.py,
processing_florence2.py, processing_got_ocr2.py, processing_deepseek_vl.py, processing_deepseek_vl_hybrid.py,
processing_janus.py; models/fast_vlm/convert_fastvlm_weights_to_hf.py for the square of FastVLM's processor, LLaVA's.
"""

from recorder.errors import USAGE, RecorderError
from recorder.inputs.layout import INT64, Images, Request, Tensor, number, patch_side, pixels
from recorder.inputs.native import pixtral

# Towers with a class token before the patches; it is dropped by the feature strategy "default".
CLASS_TOKEN = ("clip_vision_model",)


def _pixels(r: Request) -> dict:
    side = number(r.document, "vision_config.image_size")
    return pixels(r.count, 3, side, side)


def tower_tokens(document) -> int:
    """Tokens that a CLIP or SigLIP tower gives for one square after vision_feature_select_strategy."""
    class_token = document["vision_config"].get("model_type") in CLASS_TOKEN
    dropped = document.get("vision_feature_select_strategy", "default") == "default"
    return patch_side(document) ** 2 + int(class_token) - int(dropped)


def llava(r: Request) -> Images:
    """LLaVA 1.5, and Pixtral, which shares its model type."""
    if r.document["vision_config"].get("model_type") == "pixtral":
        return pixtral(r)
    return Images(tower_tokens(r.document), _pixels(r))


def video_llava(r: Request) -> Images:
    """Pictures, under a name of their own."""
    return Images(tower_tokens(r.document), {"pixel_values_images": _pixels(r)["pixel_values"]})


def florence2(r: Request) -> Images:
    """Squares of 768 pixels: the last map's positions and their mean. Its language model is BART, which has an encoder."""
    side = 768
    vision = r.document["vision_config"]
    for stride, padding, size in zip(vision["patch_stride"], vision["patch_padding"], vision["patch_size"]):
        side = (side + 2 * padding - size) // stride + 1
    return Images(side**2 + 1, pixels(r.count, 3, 768, 768), decoder=True)


def paligemma(r: Request) -> Images:
    """Every patch a token. Token types of a prompt are zero; ones mark the suffix that training scores."""
    return Images(patch_side(r.document) ** 2, _pixels(r), token_types="token_type_ids", marked=False)


def gemma3(r: Request) -> Images:
    """The square's features are averaged down to mm_tokens_per_image."""
    return Images(number(r.document, "mm_tokens_per_image"), _pixels(r), token_types="token_type_ids")


def gemma3n(r: Request) -> Images:
    """Squares of 768 pixels, whatever the config says: its tower is timm's."""
    tokens = number(r.document, "vision_soft_tokens_per_image", 256)
    return Images(tokens, pixels(r.count, 3, 768, 768), token_types="token_type_ids")


def fast_vlm(r: Request) -> Images:
    """Squares of 1024 pixels, which the config does not say: its tower is timm's, whose stem quarters a side and whose
    stages but the first halve it. Architectures before fastvit_mci3 have four stages."""
    vision = r.document.get("vision_config") or {}
    five = vision.get("architecture", "fastvit_mci3") in ("fastvit_mci3", "fastvit_mci4")
    return Images((1024 // (64 if five else 32)) ** 2, pixels(r.count, 3, 1024, 1024))


def blip2(r: Request) -> Images:
    """The Q-Former answers with its query tokens. Of its language models T5 has an encoder."""
    text = r.document.get("text_config") or {}
    return Images(
        number(r.document, "num_query_tokens", 32), _pixels(r), decoder=text.get("model_type", "opt") == "t5"
    )


def instruct_blip(r: Request) -> Images:
    """The same, whose Q-Former reads one instruction with each image: as many tokens as the text, as far as it has
    positions, and the two that BERT's tokenizer writes around them where there is none."""
    if r.images != 1:
        raise RecorderError("--images", "InstructBLIP reads one instruction with each image", "give 1", USAGE)
    plain = blip2(r)
    positions = number(r.document.get("qformer_config") or {}, "max_position_embeddings", 512)
    shape = r.batch, min(max(r.text, 2), positions)
    text = {
        "qformer_input_ids": Tensor(shape, INT64, (5,)),
        "qformer_attention_mask": Tensor(shape, INT64, (1,)),
    }
    return Images(plain.tokens, plain.tensors | text, decoder=plain.decoder)


def halved_map(document, vision: str) -> int:
    """Tokens of one square after SAM's tower and two convolutions that halve the sides of its map."""
    side = number(document, f"{vision}.image_size", 1024) // number(document, f"{vision}.patch_size", 16)
    return (((side + 1) // 2 + 1) // 2) ** 2


def got_ocr2(r: Request) -> Images:
    """Uncut, as the processor leaves pictures unless a call says otherwise."""
    side = number(r.document, "vision_config.image_size", 1024)
    return Images(halved_map(r.document, "vision_config"), pixels(r.count, 3, side, side))


def deepseek_vl(r: Request) -> Images:
    """Scaled into the square and padded."""
    return Images(patch_side(r.document) ** 2, _pixels(r))


def janus(r: Request) -> Images:
    """The same; a token stands before and one behind those of a picture."""
    side = number(r.document, "vision_config.image_size", 384)
    patches = side // number(r.document, "vision_config.patch_size", 16)
    return Images(patches**2, pixels(r.count, 3, side, side))


def deepseek_vl_hybrid(r: Request) -> Images:
    """Once more in the larger square of the second tower."""
    side = number(r.document, "high_res_vision_config.image_size", 1024)
    high = pixels(r.count, 3, side, side)["pixel_values"]
    return Images(patch_side(r.document) ** 2, _pixels(r) | {"high_res_pixel_values": high})
